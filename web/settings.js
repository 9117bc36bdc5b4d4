// The voice and sampling form.

const NUMBERS = { temperature: Number, top_p: Number, top_k: Number };

function optionOf({ name, language, description }) {
  const option = new Option(`${name} (${language})`, name);
  option.dataset.description = description;
  return option;
}

export class Settings {
  #form;

  constructor(form) {
    this.#form = form;
    form.addEventListener('input', () => this.#showValues());
    form.addEventListener('submit', (event) => event.preventDefault());
  }

  /** Takes voices and defaults from `session.ready`. What the user has chosen before stays (after a reconnect). */
  fill({ voices, config }) {
    const { voice, seed } = this.#form.elements;
    const chosen = voice.value;
    voice.replaceChildren(
      ...voices.map(optionOf),
      new Option('None: the model chooses', ''),
    );
    voice.options[voice.options.length - 1].dataset.description = 'No reference: the timbre is the model’s choice.';
    const first = !this.#form.dataset.filled;
    voice.value = first ? (config.voice ?? '') : chosen;
    if (voice.selectedIndex < 0) voice.selectedIndex = 0; // the chosen voice is gone
    if (first) this.#fillSampling(config, seed);
    this.#form.dataset.filled = 'yes';
    this.#showValues();
  }

  /** A voice that there is now too: it is chosen. */
  add(voice) {
    const list = this.#form.elements.voice;
    list.add(optionOf(voice), list.options.length - 1); // before "None"
    list.value = voice.name;
    this.#showValues();
  }

  #fillSampling(config, seed) {
    for (const key of Object.keys(NUMBERS)) this.#form.elements[key].value = config[key];
    seed.value = config.seed ?? '';
  }

  /** What is wrong with the first field that holds something not allowed; null if all are well. */
  get problem() {
    const field = this.#form.querySelector('input:invalid');
    return field && `${field.labels[0].querySelector('span').textContent}: ${field.validationMessage}`;
  }

  /** Keys for `session.config`. Only while there is no `problem`. */
  read() {
    const { elements } = this.#form;
    const config = {
      voice: elements.voice.value || null,
      seed: elements.seed.value === '' ? null : Number(elements.seed.value),
    };
    for (const [key, read] of Object.entries(NUMBERS)) config[key] = read(elements[key].value);
    return config;
  }

  #showValues() {
    const { elements } = this.#form;
    for (const output of this.#form.querySelectorAll('output[for]'))
      output.value = Number(elements[output.htmlFor.value].value).toFixed(2);
    const [option] = elements.voice.selectedOptions;
    this.#form.querySelector('[data-voice-description]').textContent = option?.dataset.description ?? '';
  }
}
