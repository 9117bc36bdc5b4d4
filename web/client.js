// The gateway's native protocol over a WebSocket, for any page:
//
//   const client = new SpeechClient('ws://127.0.0.1:8080/v1/stream', { onReady, onStatus, onRefused, onFault });
//   client.connect();
//   const context = client.open({ onSegment, onAudio, onEnd }, { voice: 'anna' });
//   context.text('Hello, '); context.text('world.'); context.done();
//
// or, where promises and iterators are liked better, see say.js.
//
// A context ends exactly once (`onEnd`), and after that, or after `cancel`, nothing of it is delivered. When the
// connection is lost, contexts of which nothing was spoken are said again on the next one, the others end.
// Nothing that the server sends makes the client throw; what does not fit goes to `onFault`.

import { SpeechContext } from './context.js';
import { isFormat, parseHeader, readSamples } from './framing.js';

const AUDIO_CONFIG = Object.freeze({ framing: 'header', response_format: 'pcm', sample_rate: 44100 });
const RETRY_MS = { first: 500, longest: 10_000 };
const MOST_BYTES_PER_CHARACTER = 6; // of JSON: \u001f
const BYTES_AROUND_TEXT = 1024;
const NOTHING = () => {};

/** The subprotocols to offer: a page cannot set headers, so a key (or none) goes along as one of them. */
function subprotocols(key) {
  const bytes = new TextEncoder().encode(key ?? '');
  const base64url = btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return key ? ['audio8.v1', `audio8.key.${base64url}`] : ['audio8.v1'];
}

/**
 * Handlers: `onReady(message)` for each `session.ready`; `onStatus({state, retryMs, reason})` with state `connecting`,
 * `ready`, `waiting` (for the next attempt) or `closed`; `onRefused(error)` for refusals; `onFault(text)` for messages
 * that break the protocol.
 */
export class SpeechClient {
  #url;
  #handlers;
  #key;
  #WebSocket;
  #later;
  #socket = null;
  #ready = false;
  #attempts = 0;
  #retry = null;
  #opened = 0;
  #contexts = new Map(); // by id, in order of opening, those alive
  #numbers = new Map(); // by context_number, those whose audio has started
  #config = {};
  #configSent = null; // as JSON
  #ending = false; // the server is about to end, and opens no more contexts

  /** Of the server: contexts at once, characters of text in a context's buffer and in a message. */
  limits = { contexts: Infinity, text: Infinity, message: Infinity };

  /** `key`: of a gateway that wants one; the other options are for tests. */
  constructor(
    url,
    handlers = {},
    { key = null, WebSocket = globalThis.WebSocket, later = (f, ms) => setTimeout(f, ms) } = {},
  ) {
    this.#url = url;
    this.#key = key;
    this.#handlers = { onReady: NOTHING, onStatus: NOTHING, onRefused: NOTHING, onFault: NOTHING, ...handlers };
    this.#WebSocket = WebSocket;
    this.#later = later;
  }

  /** Connects now (also: tries again now), and again whenever the connection is lost, until `close`. */
  connect() {
    if (this.#socket) return;
    clearTimeout(this.#retry);
    this.#handlers.onStatus({ state: 'connecting' });
    const socket = new this.#WebSocket(this.#url, subprotocols(this.#key));
    socket.binaryType = 'arraybuffer';
    socket.onmessage = ({ data }) => (typeof data === 'string' ? this.#onText(data) : this.#onBinary(data));
    socket.onclose = (event) => this.#onClose(event);
    this.#socket = socket;
  }

  /** Ends the connection, and all contexts, for good. */
  close() {
    clearTimeout(this.#retry);
    const socket = this.#socket;
    this.#forget();
    for (const context of [...this.#contexts.values()]) this.endContext(context, 'closed', {});
    if (socket) {
      socket.onmessage = socket.onclose = null;
      socket.close(1000);
    }
    this.#handlers.onStatus({ state: 'closed' });
  }

  /**
   * Keys of `session.config` for contexts opened from now on. The server locks its config while a context is open,
   * so a change goes out, and contexts opened after it start, when those before have ended.
   */
  configure(config) {
    this.#config = config;
  }

  /** Opens a context; `opening` may have `voice`, `seed` and `language`. */
  open(listener = {}, opening = {}) {
    const context = new SpeechContext(this, `turn-${++this.#opened}`, listener, opening);
    context.config = JSON.stringify({ ...AUDIO_CONFIG, ...this.#config });
    this.#contexts.set(context.id, context);
    this.#admitWaiting();
    return context;
  }

  /** For SpeechContext: sends one message. */
  send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  /** For SpeechContext: ends a context once, and forgets it, so that whatever still comes of it is dropped. */
  endContext(context, reason, detail) {
    this.#contexts.delete(context.id);
    this.#numbers.delete(context.number);
    const cancelled = context.state === 'cancelled';
    context.state = 'ended';
    context.listener.onEnd(cancelled ? { reason: 'cancelled', detail: context.account(detail) } : { reason, detail });
    this.#admitWaiting();
  }

  #admitWaiting() {
    if (!this.#ready || this.#ending) return;
    const contexts = [...this.#contexts.values()];
    for (const context of contexts.filter(({ admitted }) => !admitted)) {
      if (contexts.filter(({ admitted }) => admitted).length >= this.limits.contexts) return;
      if (context.config !== this.#configSent) {
        if (contexts.some(({ admitted }) => admitted)) return;
        this.send({ type: 'session.config', ...JSON.parse(context.config) });
        this.#configSent = context.config;
      }
      context.admit();
    }
  }

  // Connection ---------------------------------------------------------------------------------------------------

  #onClose({ code, reason }) {
    this.#forget();
    for (const context of [...this.#contexts.values()])
      if (context.admitted && !context.rewind()) this.endContext(context, 'lost', {});
    const longest = Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** this.#attempts);
    const retryMs = longest * (0.5 + Math.random() / 2); // spread, so that all pages do not return at once
    this.#attempts += 1;
    this.#retry = this.#later(() => this.connect(), retryMs);
    this.#handlers.onStatus({ state: 'waiting', retryMs, reason: reason || `connection lost (${code})` });
  }

  /** The socket is gone, and what was said on it. */
  #forget() {
    this.#socket = null;
    this.#ready = false;
    this.#configSent = null;
    this.#ending = false;
    this.#numbers.clear();
  }

  // Messages from the server -------------------------------------------------------------------------------------

  #onText(data) {
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      this.#handlers.onFault('a text message is not JSON');
      return;
    }
    if (message === null || typeof message !== 'object') return this.#handlers.onFault('a message is not an object');
    if (message.type === 'session.ready') return this.#onReady(message);
    if (message.type === 'error') return this.#onError(message);
    const context = this.#contexts.get(message.context_id);
    if (context && Object.hasOwn(this.#CONTEXT_MESSAGES, message.type))
      this.#CONTEXT_MESSAGES[message.type](context, message);
    // Anything else is of an ended context or of a newer protocol: not for us.
  }

  #CONTEXT_MESSAGES = {
    'audio.start': (context, message) => this.#onStart(context, message),
    'audio.segment': (context, message) => context.state !== 'cancelled' && this.#onSegment(context, message),
    'input.flushed': (context, message) => context.state !== 'cancelled' && context.listener.onFlushed(message),
    'session.progress': (context, message) => context.state !== 'cancelled' && context.listener.onProgress(message),
    'audio.done': (context, message) => this.#onAudioDone(context, message),
    'session.done': (context, message) => this.endContext(context, message.reason, message),
    'input.cancelled': (context, message) => this.endContext(context, 'cancelled', message),
  };

  #onReady(message) {
    this.#ready = true;
    this.#attempts = 0;
    const { contexts, text_characters: text, message_bytes: bytes } = message.limits;
    this.limits = { contexts, text, message: Math.floor((bytes - BYTES_AROUND_TEXT) / MOST_BYTES_PER_CHARACTER) };
    this.#handlers.onReady(message);
    this.#handlers.onStatus({ state: 'ready' });
    this.#admitWaiting();
  }

  #onError(message) {
    const context = this.#contexts.get(message.context_id);
    const about = this.#contexts.get(message.about_context_id);
    if (context) this.#onFailed(context, message);
    else if (about?.admitted && about.state !== 'cancelled') {
      this.send({ type: 'input.cancel', context_id: about.id }); // a part of it was refused: it cannot be whole
      this.endContext(about, 'error', message);
    }
    // A turn that was stopped may have had text on its way: that it is refused is no news.
    else if (message.code !== 'context_ended') this.#handlers.onRefused(message);
  }

  /** What a server that is about to end does not speak any more waits for the next one, unless it had begun. */
  #onFailed(context, message) {
    const isLate = message.code === 'shutting_down';
    this.#ending ||= isLate;
    if (!isLate || !context.rewind()) this.endContext(context, 'error', message);
  }

  #onStart(context, message) {
    if (!isFormat(message.format)) return this.#handlers.onFault(`audio format ${message.format} was not asked for`);
    context.start(message);
    this.#numbers.set(context.number, context);
    if (context.state !== 'cancelled') context.listener.onStart(message);
  }

  #onSegment(context, message) {
    context.segment(message.text, message.start_sample);
    context.listener.onSegment(message);
  }

  #onAudioDone(context, message) {
    context.complete = true;
    if (context.state === 'cancelled') return;
    if (message.samples !== context.samples) {
      this.#handlers.onFault(`${context.id}: ${context.samples} samples came, ${message.samples} were sent`);
    }
  }

  #onBinary(buffer) {
    try {
      const header = parseHeader(buffer);
      const context = this.#numbers.get(header.contextNumber);
      if (context && context.state !== 'cancelled') this.#onAudio(context, header, buffer);
    } catch (error) {
      this.#handlers.onFault(error.message);
    }
  }

  #onAudio(context, header, buffer) {
    if (header.sequence < context.sequence)
      throw new Error(`${context.id}: audio message ${header.sequence} came twice`);
    const samples = readSamples(buffer, context.format, header.count);
    if (header.sequence !== context.sequence || header.firstSample !== context.samples) {
      this.#handlers.onFault(`${context.id}: audio lost before message ${header.sequence}`);
    }
    context.sequence = header.sequence + 1;
    context.samples = header.firstSample + header.count;
    context.listener.onAudio(samples, header.firstSample);
  }
}
