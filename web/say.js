// The client with promises and iterators:
//
//   import { SpeechClient } from 'https://speak.example/web/client.js';
//   import { say, SpeechError } from 'https://speak.example/web/say.js';
//
//   const client = new SpeechClient('wss://speak.example/v1/stream', {}, { key });
//   client.connect();
//   const turn = say(client, tokens, { voice: 'anna' }); // a text, or an async iterable of pieces of one
//   for await (const { samples, start } of turn) play(samples); // Float32Array, and the position of its first sample
//   …
//   const { textSpoken } = await turn.cancel(heardMs); // at any time: the iteration ends
//
// A text that still comes is left at its next piece once the turn is over.

/** Why a turn failed. `code`: that of the wire, or `lost` or `closed` if the connection was. */
export class SpeechError extends Error {
  constructor(code, message) {
    super(`${message} (${code})`);
    this.name = 'SpeechError';
    this.code = code;
  }
}

/** Ends that are failures, besides `error`: code and message. */
const FAILURES = {
  lost: ['lost', 'the connection was lost while this was spoken'],
  closed: ['closed', 'the client was closed'],
  idle: ['context_ended', 'no text came for too long, so the server ended the speech'],
};

/** Speaks `text`; `opening` may have `voice`, `seed` and `language`. Audio is kept until it is taken. */
export function say(client, text, opening = {}) {
  return new Turn(client, text, opening);
}

/** An async iterator of audio. Leaving the iteration cancels; a text that fails cancels, and its error is thrown. */
class Turn {
  #context;
  #chunks = [];
  #wake = () => {};
  #problem = null; // of the text
  #end = null;

  constructor(client, text, opening) {
    const { promise, resolve } = withResolver();
    /** Resolves to what `onEnd` tells, `{reason, detail}`, once nothing more will come. */
    this.ended = promise;
    this.#context = client.open(
      {
        onAudio: (samples, start) => this.#take({ samples, start }),
        onEnd: (end) => {
          this.#end = end;
          resolve(end);
          this.#wake();
        },
      },
      opening,
    );
    this.#push(typeof text === 'string' ? [text] : text);
  }

  /** The text and first sample of each segment so far. */
  get segments() {
    return [...this.#context.segments];
  }

  /** `{textSpoken, textRemaining}` for a listener who has heard so much; all that came without. */
  heard(offsetMs) {
    return this.#context.heard(offsetMs);
  }

  /** Speaks all that came of the text so far, half words too. */
  flush() {
    this.#context.flush();
  }

  /** Stops: no audio follows. Resolves to `{textSpoken, textRemaining}`. */
  async cancel(playbackOffsetMs) {
    this.#chunks = [];
    this.#context.cancel(playbackOffsetMs);
    const { reason, detail } = await this.ended;
    if (reason !== 'cancelled') return this.heard(playbackOffsetMs);
    return { textSpoken: detail.text_spoken, textRemaining: detail.text_remaining };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next() {
    while (this.#chunks.length === 0 && this.#end === null) await new Promise((wake) => (this.#wake = wake));
    if (this.#chunks.length > 0) return { value: this.#chunks.shift(), done: false };
    if (this.#problem !== null) throw this.#problem;
    const { reason, detail } = this.#end;
    if (reason === 'error') throw new SpeechError(detail.code, detail.message);
    if (Object.hasOwn(FAILURES, reason)) throw new SpeechError(...FAILURES[reason]);
    return { value: undefined, done: true };
  }

  async return() {
    this.#chunks = [];
    this.#context.cancel();
    return { value: undefined, done: true };
  }

  #take(chunk) {
    this.#chunks.push(chunk);
    this.#wake();
  }

  async #push(pieces) {
    try {
      for await (const piece of pieces) {
        if (this.#context.state !== 'open') break; // leaving the loop closes the generator
        this.#context.text(piece);
      }
      this.#context.done();
    } catch (error) {
      this.#problem = error;
      this.#chunks = [];
      this.#context.cancel();
    }
  }
}

function withResolver() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
