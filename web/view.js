// What the page shows beside the text field: connection and audio status, figures, the turns so far.

import { paintText } from './composer.js';

const TURNS_SHOWN = 20;
const ENDINGS = { open: 'speaking', closing: 'speaking', spoken: 'spoken', stopped: 'stopped', failed: 'failed' };

const milliseconds = (value) =>
  value === null ? '–' : Math.round(value).toLocaleString('en-US').replace(',', '\u202f');

export class View {
  #root;
  #items = new Map(); // turn → its list item

  constructor(root) {
    this.#root = root;
  }

  #get(name) {
    return this.#root.querySelector(`[data-view="${name}"]`);
  }

  #setText(name, text) {
    const element = this.#get(name);
    if (element.textContent !== text) element.textContent = text;
  }

  connection({ state, retryMs, reason }) {
    const texts = {
      connecting: 'Connecting…',
      ready: 'Ready',
      waiting: `Reconnecting in ${Math.ceil(retryMs / 1000)} s`,
      closed: 'Closed',
    };
    this.#setText('status', texts[state]);
    this.#get('status').dataset.state = state;
    this.#get('status').title = reason ?? '';
    this.#get('reconnect').hidden = state !== 'waiting';
  }

  model({ model, sample_rate: rate }) {
    this.#setText('model', `${model} · ${(rate / 1000).toFixed(1)} kHz`);
  }

  audio({ status, message }) {
    const texts = { blocked: 'Tap to hear', interrupted: 'Audio is paused by the system', failed: message };
    const cover = this.#get('cover');
    cover.hidden = !(status in texts);
    cover.disabled = status === 'failed';
    if (texts[status]) this.#setText('cover', texts[status]);
  }

  /** A line of advice or trouble; empty clears it. */
  notice(text, kind = 'info') {
    this.#setText('notice', text);
    this.#get('notice').dataset.kind = kind;
  }

  /** Takes an earlier line of advice away; trouble stays until it is over. */
  clearAdvice() {
    if (this.#get('notice').dataset.kind === 'info') this.#setText('notice', '');
  }

  figures({ firstAudioMs, bufferedMs, underruns, realTimeFactor }) {
    this.#setText('first-audio', milliseconds(firstAudioMs));
    this.#setText('buffer', milliseconds(bufferedMs));
    this.#setText('underruns', String(underruns));
    this.#setText('rtf', realTimeFactor === null ? '–' : realTimeFactor.toFixed(2));
    this.#get('underruns').dataset.bad = String(underruns > 0);
  }

  busy(busy) {
    this.#get('stop').disabled = !busy;
  }

  typing(typing) {
    this.#setText('auto', typing ? 'Stop typing' : 'Let it type');
  }

  /** Shows a turn whose text has left the field in the list, newest first. */
  turn(turn) {
    let item = this.#items.get(turn);
    if (!item) {
      item = this.#get('turn').content.firstElementChild.cloneNode(true);
      this.#items.set(turn, item);
      this.#get('turns').prepend(item);
      this.#forgetOldest();
    }
    item.dataset.state = turn.state;
    item.querySelector('.state').textContent =
      ENDINGS[turn.state] + (Number.isSafeInteger(turn.seed) ? ` · seed ${turn.seed}` : '');
    item.querySelector('.problem').textContent = turn.problem ?? '';
    this.#get('history').hidden = false;
    this.progress();
  }

  /** Brings the listed turns' highlighting up to date; a long one is scrolled along with the speech. */
  progress() {
    for (const [turn, item] of this.#items) {
      const text = item.querySelector('.text');
      if (!paintText(text, turn.text, turn.heardLength, turn.text.length) || turn.over) continue;
      text.scrollTop = (text.querySelector('.heard')?.offsetHeight ?? 0) - text.clientHeight / 2;
    }
  }

  #forgetOldest() {
    for (const [turn, item] of this.#items) {
      if (this.#items.size <= TURNS_SHOWN) return;
      if (!turn.over) continue;
      item.remove();
      this.#items.delete(turn);
    }
  }
}
