// One turn of speech as its client sees it: what waits to be sent, what came, and what of it was heard.

import { splitHeard } from './heard.js';

const MOST_ATTEMPTS = 3; // to say a context: it may be what breaks the connection
const NOTHING = () => {};

/** Made by `SpeechClient.open`. */
export class SpeechContext {
  #client;
  #queue = []; // messages that wait: for the connection, or for room in the server's buffer
  #sent = []; // messages that were sent; kept until audio starts, so long it can all be said again elsewhere
  #text = '';
  #attempts = 0;
  #unannounced = 0; // characters that were sent and are in no segment yet

  constructor(client, id, listener, opening) {
    this.#client = client;
    this.id = id;
    this.listener = {
      onStart: NOTHING,
      onSegment: NOTHING,
      onAudio: NOTHING,
      onFlushed: NOTHING,
      onProgress: NOTHING,
      onEnd: NOTHING,
      ...listener,
    };
    this.opening = opening; // sent with the text that opens the context
    this.state = 'open'; // open → draining → ended, or cancelled → ended
    this.admitted = false; // its messages go out; until then they wait
    this.sequence = 0; // of the next binary message
    this.samples = 0; // received so far
    this.segments = []; // [{text, start}]
    this.format = null;
    this.rate = 0;
    this.complete = false; // all its audio came
    this.cancelledAtMs = undefined;
  }

  get alive() {
    return this.state !== 'ended';
  }

  /** Appends text verbatim. What the server's buffer has no room for goes out as it speaks. */
  text(text) {
    if (this.state !== 'open' || text === '') return;
    this.#text += text;
    this.#say({ type: 'input.text', text });
  }

  /** Speaks all that is buffered, half words too. */
  flush(flushId) {
    if (this.state === 'open') this.#say({ type: 'input.flush', ...(flushId && { flush_id: flushId }) });
  }

  /** No more text. */
  done() {
    if (this.state !== 'open') return;
    this.state = 'draining';
    this.#say({ type: 'input.done' });
  }

  /** Drops the turn; `playbackOffsetMs` is how much of it was heard. `onEnd` follows once the server has confirmed. */
  cancel(playbackOffsetMs) {
    if (this.state === 'cancelled' || this.state === 'ended') return;
    this.state = 'cancelled';
    this.cancelledAtMs = playbackOffsetMs;
    this.#queue = [];
    // To the cancel of a context that it never heard of, the server says nothing.
    if (!this.#known) return this.#client.endContext(this, 'cancelled', {});
    const offset = playbackOffsetMs === undefined ? {} : { playback_offset_ms: Math.round(playbackOffsetMs) };
    this.#client.send({ type: 'input.cancel', ...offset, context_id: this.id });
  }

  /** Its text, `{textSpoken, textRemaining}`, cut where a listener is who has heard so much; all that came without. */
  heard(offsetMs) {
    const { samples, rate } = this;
    return splitHeard(this.#text, this.segments, { samples, rate, complete: this.complete }, offsetMs);
  }

  // For the client ------------------------------------------------------------------------------------------------

  /** From now on its messages go out. */
  admit() {
    this.admitted = true;
    this.pump();
  }

  /** Sends what waits, as far as there is room. */
  pump() {
    while (this.admitted && this.#queue.length > 0) {
      const message = this.#queue.shift();
      if (message.type === 'input.text') {
        const room = Math.min(this.#client.limits.text - this.#unannounced, this.#client.limits.message);
        const text = message.text.slice(0, Math.max(0, room));
        const rest = message.text.slice(text.length);
        if (rest) this.#queue.unshift({ ...message, text: rest });
        if (text === '') return;
        this.#unannounced += text.length;
        this.#send({ ...message, text });
      } else this.#send(message);
    }
  }

  /** Audio follows, in this format. */
  start({ format, sample_rate: rate, context_number: number }) {
    Object.assign(this, { format, rate, number });
    this.#sent = [];
  }

  /** The next audio speaks `text`. */
  segment(text, start) {
    this.segments.push({ text, start });
    this.#unannounced -= text.length;
    this.pump();
  }

  /** What `onEnd` tells of a cancel, all text included; where the server said nothing of it, by our own record. */
  account(detail) {
    const spoken = detail.text_spoken ?? this.heard(this.cancelledAtMs).textSpoken;
    return { ...detail, text_spoken: spoken, text_remaining: this.#text.slice(spoken.length) };
  }

  /** The connection is gone -> whether all of it is to be said again on the next one: nothing of it was spoken. */
  rewind() {
    if (this.state === 'cancelled' || this.format !== null) return false;
    this.#attempts += this.#known;
    if (this.#attempts >= MOST_ATTEMPTS) return false;
    this.#queue = [...this.#sent, ...this.#queue];
    this.#sent = [];
    this.#unannounced = 0;
    this.admitted = false;
    return true;
  }

  /** The server has heard of it, or is about to. */
  get #known() {
    return this.format !== null || this.#sent.some(({ type }) => type !== 'input.flush'); // a flush opens nothing
  }

  #say(message) {
    this.#queue.push(message);
    this.pump();
  }

  #send(message) {
    const opens = message.type === 'input.text' && !this.#sent.some(({ type }) => type === 'input.text');
    const opening = opens && this.format === null ? this.opening : {};
    this.#client.send({ ...message, ...opening, context_id: this.id });
    if (this.format === null) this.#sent.push(message);
  }
}
