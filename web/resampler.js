// Windowed-sinc resampling whose phase never restarts inside an utterance. The phase is an integer fraction
// (from/to in lowest terms), so it neither jumps at chunk borders nor drifts, however long the utterance is.

const ZERO_CROSSINGS = 16; // on each side of the kernel's centre, at the lower of the two rates

const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));

/** Blackman window over [-1, 1]. */
const blackman = (x) => 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x);

const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

export class Resampler {
  /** @param {number} from rate of the input in Hz  @param {number} to rate of the output in Hz (both integers) */
  constructor(from, to) {
    const divisor = gcd(from, to);
    this.up = to / divisor; // phases between two input samples
    this.down = from / divisor; // phases to advance for each output sample
    // Going down, the kernel is stretched so that what the lower rate cannot hold is removed.
    const cutoff = to < from ? (0.95 * to) / from : 1;
    this.half = Math.ceil(ZERO_CROSSINGS / cutoff); // input samples needed on each side
    this.taps = 2 * this.half;
    this.kernels = this.#design(cutoff);
    this.restart();
  }

  /** [up][taps] coefficients, each phase summing to 1. With equal rates the only phase is an exact identity. */
  #design(cutoff) {
    const kernels = new Float32Array(this.up * this.taps);
    for (let phase = 0; phase < this.up; phase++) {
      const row = kernels.subarray(phase * this.taps, (phase + 1) * this.taps);
      let sum = 0;
      for (let k = 0; k < this.taps; k++) {
        const x = k - (this.half - 1) - phase / this.up; // distance from the kernel's centre in input samples
        const value = Math.abs(x) < this.half ? sinc(x * cutoff) * blackman(x / this.half) : 0;
        row[k] = Math.abs(value) < 1e-9 ? 0 : value;
        sum += row[k];
      }
      for (let k = 0; k < this.taps; k++) row[k] /= sum;
    }
    return kernels;
  }

  /** Back to the first sample of a new utterance. */
  restart() {
    this.whole = 0; // index of the input sample at or before the next output sample
    this.phase = 0; // how far past it, in 1/up
  }

  /** Samples that an input of `samples` gives: floor(n · to / from + 0.5), as the gateway counts them. */
  outputLength(samples) {
    return Math.floor((samples * this.up) / this.down + 0.5);
  }

  /** Output samples that can be made while input samples up to (not including) `end` are known. */
  ready(end) {
    const last = end - this.half - 1; // the newest sample that may be the centre of a kernel
    if (last < this.whole) return 0;
    return Math.floor(((last - this.whole + 1) * this.up - 1 - this.phase) / this.down) + 1;
  }

  /**
   * The next output sample. `ring` holds input sample i at position i + `lead`.
   * The caller has asked `ready` before.
   */
  next(ring, lead) {
    const row = this.phase * this.taps;
    const first = lead + this.whole - (this.half - 1);
    let sum = 0;
    for (let k = 0; k < this.taps; k++) sum += this.kernels[row + k] * ring.at(first + k);
    this.phase += this.down;
    const steps = Math.floor(this.phase / this.up);
    this.whole += steps;
    this.phase -= steps * this.up;
    return sum;
  }
}
