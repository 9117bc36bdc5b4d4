// Text in, speech out: joins the client, the player and the record of each utterance.
//
// Text goes out as it is written, but never far ahead of the speech. That bounds what the server and this page hold,
// however long the text is, and however slowly (or not at all) it is played.

import { Utterance } from './utterance.js';

const TEXT_AHEAD = 1000; // characters sent whose audio has not begun to arrive: about a minute of speech
const AUDIO_AHEAD_MS = 30_000; // received and not played
const AUDIO_LIMIT_MS = 300_000; // more than pacing can lead to: the other side does not keep to the protocol

/**
 * One utterance as the page shows it. `state` is `open` (more text may be written), `closing` (not so, but it is
 * still being spoken) and then, for good, `spoken`, `stopped` or `failed`.
 */
class Turn {
  constructor(id, rate) {
    this.id = id;
    this.record = new Utterance(rate);
    this.waiting = ''; // written and not yet sent
    this.flushWanted = false;
    this.doneWanted = false;
    this.state = 'open';
    this.heardSamples = 0;
    this.problem = null;
  }

  get text() {
    return this.record.text + this.waiting;
  }

  get over() {
    return ['spoken', 'stopped', 'failed'].includes(this.state);
  }

  /** Characters heard so far. */
  get heardLength() {
    return this.record.heardLength(this.heardSamples);
  }
}

/** Events: `turn` (a turn began, changed its state or was given up; detail {turn}), `audio` (detail {samples}). */
export class Speaker extends EventTarget {
  #client;
  #player;
  #now;
  #rate;
  #count = 0;
  #turns = new Map(); // by id, those that are not over

  constructor(client, player, { now = () => performance.now() } = {}) {
    super();
    this.#client = client;
    this.#player = player;
    this.#now = now;
    this.#rate = player.sourceRate;
    this.prebufferMs = 0; // the server's hint
    player.addEventListener('gap', ({ detail }) => this.#turns.get(detail.id)?.record.gap(detail.position));
    player.addEventListener('progress', () => this.#pumpAll());
    player.addEventListener('finished', ({ detail }) => this.#onFinished(this.#turns.get(detail.id)));
  }

  /** Opens a turn. `opening` (voice, seed) goes with its first text. */
  open(opening) {
    const turn = new Turn(++this.#count, this.#rate);
    turn.context = this.#client.open(
      {
        onSegment: ({ text, start_sample: start }) => this.#onSegment(turn, text, start),
        onAudio: (samples) => this.#onAudio(turn, samples),
        onEnd: (end) => this.#onEnd(turn, end),
      },
      opening,
    );
    this.#turns.set(turn.id, turn);
    this.#player.begin(turn.id, this.prebufferMs);
    this.#changed(turn);
    return turn;
  }

  write(turn, text) {
    if (turn.state !== 'open') return;
    turn.waiting += text;
    this.#pump(turn);
  }

  /** Speaks all that was written so far; more may follow. */
  flush(turn) {
    if (turn.state !== 'open') return;
    turn.flushWanted = true;
    this.#pump(turn);
  }

  /** Nothing more will be written. */
  done(turn) {
    if (turn.state !== 'open') return;
    turn.state = 'closing';
    turn.doneWanted = true;
    this.#pump(turn);
    this.#changed(turn);
  }

  /** Silence now: every turn is dropped, here and on the server. */
  stop() {
    const heard = this.#player.stop();
    for (const turn of [...this.#turns.values()]) {
      turn.heardSamples = heard.get(turn.id) ?? turn.heardSamples;
      turn.context.cancel((turn.heardSamples / this.#rate) * 1000);
      this.#close(turn, 'stopped');
    }
  }

  /** Brings `heardSamples` of the turns up to date, for display. */
  refreshPositions() {
    for (const turn of this.#turns.values()) turn.heardSamples = this.#player.position(turn.id) ?? turn.heardSamples;
  }

  get busy() {
    return this.#turns.size > 0;
  }

  #pumpAll() {
    for (const turn of this.#turns.values()) this.#pump(turn);
  }

  /** Sends what may be sent. Called when something was written, and when speech has caught up a little. */
  #pump(turn) {
    const { record, context } = turn;
    const room = TEXT_AHEAD - (record.text.length - record.spokenLength);
    if (turn.waiting && room > 0 && this.#player.bufferedMs < AUDIO_AHEAD_MS) {
      const piece = wholeCharacters(turn.waiting, room);
      turn.waiting = turn.waiting.slice(piece.length);
      context.text(piece);
      record.sent(piece, this.#now());
    }
    if (turn.waiting) return;
    if (turn.flushWanted) context.flush();
    if (turn.doneWanted) context.done();
    if (turn.flushWanted || turn.doneWanted) record.released(this.#now());
    turn.flushWanted = turn.doneWanted = false;
  }

  #onSegment(turn, text, start) {
    turn.record.segment(text, start);
    this.#pump(turn);
  }

  #onAudio(turn, samples) {
    turn.record.audio(samples.length, this.#now());
    this.#player.push(turn.id, samples);
    this.dispatchEvent(new CustomEvent('audio', { detail: { samples } }));
    if (this.#player.bufferedMs <= AUDIO_LIMIT_MS) return;
    turn.problem = 'Stopped: the server sent more audio than this page can hold.';
    this.stop();
  }

  /** The server has sent all it will. What has arrived is still played. */
  #onEnd(turn, { reason, detail }) {
    if (turn.over) return;
    turn.record.complete = true;
    turn.record.metrics = detail.metrics ?? {};
    turn.seed = detail.seed;
    turn.waiting = '';
    if (reason === 'error') turn.problem = detail.message;
    if (reason === 'lost' || reason === 'closed') turn.problem = 'The connection was lost while this was spoken.';
    if (reason === 'max_length') turn.problem = 'A part was cut: it reached the longest speech allowed.';
    this.#player.end(turn.id);
    if (turn.state === 'open') turn.state = 'closing';
    this.#changed(turn);
  }

  #onFinished(turn) {
    if (!turn) return;
    turn.heardSamples = turn.record.received;
    this.#close(turn, turn.problem ? 'failed' : 'spoken');
  }

  #close(turn, state) {
    turn.state = state;
    this.#turns.delete(turn.id);
    this.#changed(turn);
  }

  #changed(turn) {
    this.dispatchEvent(new CustomEvent('turn', { detail: { turn } }));
  }
}

/** At most `length` UTF-16 units from the start of `text`, without cutting a surrogate pair. */
export function wholeCharacters(text, length) {
  const code = text.charCodeAt(length - 1);
  const cutsPair = length < text.length && code >= 0xd800 && code <= 0xdbff;
  return text.slice(0, cutsPair ? length - 1 : length);
}
