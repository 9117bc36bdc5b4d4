// Plays utterances one after the other through the audio worklet.
//
// The main thread keeps everything that has not been heard and tops the worklet up to AHEAD_SECONDS. It does so when
// audio arrives and when the worklet reports, never on a timer, so a hidden tab plays on. What the worklet had can be
// given to a new one: an output that the system has frozen is replaced without a lost word.

import { Backlog } from './backlog.js';
import { openOutput } from './output.js';
import { State } from './playback.js';

const AHEAD_SECONDS = 4;
const WATCH_MS = 250;
const FROZEN_WATCHES = 4; // watches without a step of the audio clock: one second

/**
 * Events (CustomEvent, `detail` has the utterance's id): `started`, `gap` (also `position`), `progress` (about 50 times
 * a second while one is played, in a hidden tab too), `finished`. A stopped utterance never finishes.
 * `status` has {status}: `idle`, `running`, `blocked` (a tap is needed), `interrupted` (by a call or another app), or
 * `failed` (also `message`).
 */
export class Player extends EventTarget {
  #openOutput;
  #output = null;
  #opening = false;
  #queue = []; // utterances, the first one is being played
  #serial = 0;
  #wasInterrupted = false;
  #clock = { time: -1, still: 0 };

  constructor({ sourceRate = 44100, open = openOutput, every = setInterval } = {}) {
    super();
    this.sourceRate = sourceRate;
    this.status = 'idle';
    this.played = 0; // samples heard since the page was opened, and
    this.received = 0; // those that are heard or will be: the timeline of the waveform
    this.#openOutput = open;
    every(() => this.#watch(), WATCH_MS);
  }

  /** Call from a tap or key press: only there may a page start sound. */
  unlock() {
    if (!this.#output) this.#open();
    else this.#resume();
  }

  /** The page is seen again: revives an output that the system stopped meanwhile. Never the first to start one. */
  revive() {
    if (this.#output) this.#resume();
  }

  /** Announces an utterance; play starts when `prebufferMs` of it are there. */
  begin(id, prebufferMs = 0) {
    this.#queue.push({
      id,
      prebuffer: prebufferMs / 1000,
      backlog: new Backlog(),
      serial: 0,
      fed: 0,
      consumed: 0,
      gaps: 0,
      started: false,
      ended: false,
      endTold: false,
    });
    if (!this.#output) this.#open();
  }

  /** Appends samples to an utterance. Those of one that was stopped or never begun are dropped. */
  push(id, samples) {
    const utterance = this.#find(id);
    if (!utterance || utterance.ended || samples.length === 0) return;
    utterance.backlog.append(samples);
    this.received += samples.length;
    this.#feed();
  }

  /** No more audio will come for this utterance. */
  end(id) {
    const utterance = this.#find(id);
    if (!utterance) return;
    utterance.ended = true;
    this.#feed();
  }

  /** Silence in a few milliseconds, everything dropped. Returns what was heard: a Map of id to `position`. */
  stop() {
    const heard = new Map(this.#queue.map(({ id }) => [id, this.position(id)]));
    this.#queue = [];
    this.received = this.played;
    this.#output?.port.postMessage({ type: 'stop' });
    return heard;
  }

  /** Samples of an utterance that have left the loudspeaker; null if it is not in the queue. */
  position(id) {
    const utterance = this.#find(id);
    if (!utterance) return null;
    return Math.max(0, utterance.consumed - (this.#output?.context.outputLatency ?? 0) * this.sourceRate);
  }

  get bufferedMs() {
    return ((this.received - this.played) / this.sourceRate) * 1000;
  }

  #find(id) {
    return this.#queue.find((utterance) => utterance.id === id);
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  // The output ---------------------------------------------------------------------------------------------------

  async #open() {
    if (this.#opening) return;
    this.#opening = true;
    try {
      this.#output = await this.#openOutput(this.sourceRate);
    } catch (error) {
      this.#setStatus('failed', `This browser gives no audio output: ${error.message}`);
      return;
    } finally {
      this.#opening = false;
    }
    this.#clock = { time: -1, still: 0 };
    this.#output.port.onmessage = (event) => this.#report(event.data);
    this.#output.context.onstatechange = () => this.#stateChanged();
    for (const utterance of this.#queue) utterance.serial = 0; // begun again, on the new worklet
    this.#resume();
    this.#stateChanged();
    this.#feed();
  }

  #resume() {
    // While another app holds the audio, resume() is refused, and on some systems breaks the context for good.
    if (this.#output.context.state !== 'suspended') return;
    this.#output.context.resume().catch(() => this.#setStatus('blocked'));
  }

  #stateChanged() {
    const { state } = this.#output.context;
    if (state === 'running') this.#setStatus('running');
    if (state === 'interrupted') this.#setStatus('interrupted');
    if (state === 'suspended' && this.#wasInterrupted) this.#resume();
    this.#wasInterrupted = state === 'interrupted';
  }

  #setStatus(status, message) {
    if (this.status === status) return;
    this.status = status;
    this.#emit('status', { status, message });
  }

  /** Notices what no event tells: sound that is not allowed, and a running context whose clock stands still. */
  #watch() {
    if (!this.#output || this.#queue.length === 0) return;
    const { context } = this.#output;
    if (context.state === 'suspended') this.#setStatus('blocked');
    if (context.state !== 'running') return;
    this.#clock.still = context.currentTime === this.#clock.time ? this.#clock.still + 1 : 0;
    this.#clock.time = context.currentTime;
    if (this.#clock.still >= FROZEN_WATCHES) this.#replaceOutput();
  }

  #replaceOutput() {
    const { context, port, close } = this.#output;
    context.onstatechange = null;
    port.onmessage = null;
    this.#output = null;
    close();
    this.#open();
  }

  // The worklet --------------------------------------------------------------------------------------------------

  #feed() {
    const utterance = this.#queue[0];
    if (!utterance || !this.#output) return;
    const { port } = this.#output;
    const ahead = AHEAD_SECONDS * this.sourceRate;
    if (!utterance.serial) this.#beginOnWorklet(utterance);
    const { serial, backlog } = utterance;
    while (utterance.fed - utterance.consumed < ahead) {
      const samples = backlog.copyFrom(utterance.fed, ahead);
      if (!samples) break;
      utterance.fed += samples.length;
      port.postMessage({ type: 'push', serial, samples }, [samples.buffer]);
    }
    if (utterance.ended && !utterance.endTold && utterance.fed === backlog.received) {
      utterance.endTold = true;
      port.postMessage({ type: 'end', serial });
    }
  }

  #beginOnWorklet(utterance) {
    utterance.serial = ++this.#serial;
    utterance.fed = utterance.consumed;
    utterance.gaps = 0;
    utterance.endTold = false;
    const { serial, prebuffer, consumed } = utterance;
    this.#output.port.postMessage({ type: 'begin', serial, prebuffer, offset: consumed });
  }

  #report({ serial, state, consumed, gaps }) {
    const utterance = this.#queue[0];
    if (!utterance || utterance.serial !== serial) return; // of an utterance that was stopped meanwhile
    const heard = state === State.FINISHED ? utterance.backlog.received : consumed;
    this.played += heard - utterance.consumed;
    utterance.consumed = heard;
    utterance.backlog.dropBefore(heard);
    const { id } = utterance;
    if (!utterance.started && state !== State.WAITING) {
      utterance.started = true;
      this.#emit('started', { id });
    }
    if (gaps > utterance.gaps) this.#emit('gap', { id, position: consumed });
    utterance.gaps = gaps;
    if (state === State.FINISHED) {
      this.#queue.shift();
      this.#emit('finished', { id });
    }
    this.#feed();
    this.#emit('progress', { id });
  }
}
