// The form that makes a voice of a recording: a file, or what the microphone hears.

import { Recorder } from './recorder.js';

export class NewVoice {
  #form;
  #key;
  #onAdded;
  #onRecord;
  #recorder = new Recorder();
  #recorded = null; // a Blob

  /** `key`: of a gateway that wants one; `onAdded(voice)` is told of each new voice, `onRecord()` before the first sound. */
  constructor(form, { key, onAdded, onRecord }) {
    this.#form = form;
    this.#key = key;
    this.#onAdded = onAdded;
    this.#onRecord = onRecord;
    const { record, audio_sample: file } = form.elements;
    record.hidden = !this.#recorder.possible;
    record.addEventListener('click', () => this.#toggle());
    file.addEventListener('change', () => this.#choose(null));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#add();
    });
  }

  async #toggle() {
    if (this.#recorder.busy) return this.#recorder.stop();
    const { record } = this.#form.elements;
    this.#onRecord();
    record.disabled = true; // while the browser asks for leave
    const over = this.#recorder.record();
    const shown = setInterval(() => {
      if (!this.#recorder.busy) return;
      record.disabled = false;
      record.textContent = 'Stop recording';
    }, 50);
    try {
      this.#choose(await over);
      this.#tell('Recorded. Write below what was said.');
    } catch (error) {
      this.#tell(`The microphone cannot be used: ${error.message}`, 'bad');
    } finally {
      clearInterval(shown);
      record.disabled = false;
      record.textContent = 'Record with the microphone';
    }
  }

  /** A recording takes the place of a file, and a file that of a recording. */
  #choose(recorded) {
    const file = this.#form.elements.audio_sample;
    this.#recorded = recorded;
    if (recorded) file.value = '';
    file.required = !recorded;
    this.#tell('');
  }

  async #add() {
    const { elements } = this.#form;
    const body = new FormData();
    for (const name of ['name', 'ref_text']) body.set(name, elements[name].value.trim());
    body.set('consent', elements.consent.checked ? 'true' : '');
    body.set('audio_sample', this.#recorded ?? elements.audio_sample.files[0]);
    elements.add.disabled = true;
    this.#tell('The recording is on its way…');
    try {
      const headers = this.#key ? { Authorization: `Bearer ${this.#key}` } : {};
      const answer = await fetch('/v1/audio/voices', { method: 'POST', headers, body });
      const told = await answer.json();
      if (!answer.ok) return this.#tell(told.message, 'bad');
      this.#form.reset();
      this.#choose(null);
      this.#tell(`${told.name} speaks the next text.`);
      this.#onAdded(told);
    } catch (error) {
      this.#tell(`The gateway did not answer: ${error.message}`, 'bad');
    } finally {
      elements.add.disabled = false;
    }
  }

  #tell(text, kind = 'info') {
    const result = this.#form.querySelector('[data-view="voice-result"]');
    result.textContent = text;
    result.dataset.kind = kind;
  }
}
