// What the audio thread does, without the audio thread: one utterance at a time goes in as samples at the
// source's rate and comes out in blocks at the device's rate, with a ramp at every edge. Pure; `render`
// allocates nothing.

import { Resampler } from './resampler.js';
import { Ring } from './ring.js';

export const State = Object.freeze({ IDLE: 0, WAITING: 1, PLAYING: 2, FINISHED: 3 });

const RING_SECONDS = 8; // the player keeps about half of it filled and holds the rest itself
const FADE_SECONDS = 0.005; // long enough not to click, short enough to go unnoticed
const REFILL_SECONDS = 0.18; // after a gap; just below the first chunk of a segment (8,192 samples = 186 ms)
const PATIENCE_SECONDS = 0.3; // what is there is played when the refill has not come by then

export class Playback {
  /** @param {number} sourceRate rate of the pushed samples  @param {number} outputRate rate of `render` */
  constructor(sourceRate, outputRate) {
    this.resampler = new Resampler(sourceRate, outputRate);
    this.ring = new Ring(RING_SECONDS * sourceRate + 2 * this.resampler.half);
    this.lead = this.resampler.half - 1; // zeros before the first sample, for the kernel's left side
    this.outputRate = outputRate;
    this.fade = Math.round(FADE_SECONDS * outputRate);
    this.tail = new Float32Array(this.fade); // the ramp that a stop leaves behind
    this.tailAt = 0;
    this.tailEnd = 0;
    this.#reset(State.IDLE);
  }

  #reset(state) {
    this.state = state;
    this.ring.clear();
    this.resampler.restart();
    this.pushed = 0; // input samples of this utterance
    this.offset = 0; // input samples of this utterance that were heard before `begin`
    this.produced = 0; // output samples of this utterance
    this.total = Infinity; // output samples of the whole utterance, once its end is known
    this.gain = 0;
    this.gaps = 0;
    this.threshold = 0; // output samples wanted before play starts
    this.waited = 0; // output samples since the last push while waiting
  }

  /** Input samples of the utterance that have been played, so that a position survives a new device. */
  get consumed() {
    return this.offset + Math.min(this.pushed, this.resampler.whole);
  }

  /** Starts an utterance (or goes on with it, `offset` samples in). Whatever was playing must have ended. */
  begin(prebufferSeconds = 0, offset = 0) {
    this.#reset(State.WAITING);
    this.offset = offset;
    this.threshold = Math.round(prebufferSeconds * this.outputRate);
    this.ring.writeSilence(this.lead);
  }

  /** Appends samples, -1 … 1, to the utterance that was begun. */
  push(samples) {
    this.ring.write(samples);
    this.pushed += samples.length;
    this.waited = 0;
  }

  /** No more samples will come: what is left is played to the last one. */
  end() {
    this.total = this.resampler.outputLength(this.pushed);
    this.ring.writeSilence(this.resampler.half + 1); // right side of the last kernel
  }

  /** Drops the utterance at once, but for a ramp to zero of at most FADE_SECONDS. */
  stop() {
    if (this.state === State.PLAYING && this.gain > 0) {
      const ramp = Math.min(this.#left(), Math.ceil(this.gain * this.fade));
      this.total = this.produced + ramp; // the ramp at an utterance's end does the rest
      this.#play(this.tail, 0, ramp);
      this.tailAt = 0;
      this.tailEnd = ramp;
    }
    this.#reset(State.IDLE);
  }

  /** Output samples that can be played now. */
  #left() {
    return Math.min(this.resampler.ready(this.ring.end - this.lead), this.total - this.produced);
  }

  /** Fills `output` completely. */
  render(output) {
    let at = 0;
    while (at < output.length && this.tailAt < this.tailEnd) output[at++] = this.tail[this.tailAt++];
    if (this.state === State.WAITING) this.#startIfFilled(output.length - at);
    if (this.state === State.PLAYING) at = this.#play(output, at, output.length);
    if (at < output.length) output.fill(0, at);
  }

  #startIfFilled(blockLength) {
    const left = this.#left();
    this.waited += blockLength;
    const patient = this.waited < PATIENCE_SECONDS * this.outputRate;
    if (this.total !== Infinity || (left > 0 && (left >= this.threshold || !patient))) this.state = State.PLAYING;
  }

  /**
   * Plays into output[at, end) as far as there are samples; returns where it stopped. The gain rises by one step
   * a sample and never exceeds the distance to the end of what is there: every way of running out is a ramp to zero.
   */
  #play(output, at, end) {
    const step = 1 / this.fade;
    let left = this.#left();
    while (at < end && left > 0) {
      left -= 1;
      this.gain = Math.min(1, this.gain + step, left * step);
      output[at++] = this.gain * this.resampler.next(this.ring, this.lead);
      this.produced += 1;
    }
    this.ring.dropBefore(this.resampler.whole);
    if (left === 0) this.#ranOut();
    return at;
  }

  #ranOut() {
    this.gain = 0;
    if (this.produced >= this.total) {
      this.state = State.FINISHED;
      return;
    }
    this.state = State.WAITING;
    this.gaps += 1;
    this.waited = 0;
    this.threshold = Math.round(REFILL_SECONDS * this.outputRate);
  }
}
