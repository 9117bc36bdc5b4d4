// A ring of samples with one writer and one reader on the same thread: pure, so that it runs in the
// audio worklet and under Node alike. It allocates once, in the constructor.

export class Ring {
  /** @param {number} capacity samples that fit; rounded up to a power of two so that wrapping is one AND. */
  constructor(capacity) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, capacity)));
    this.data = new Float32Array(size);
    this.mask = size - 1;
    this.clear();
  }

  /** Forgets everything. Positions start from 0 again. */
  clear() {
    this.start = 0; // position of the oldest sample that is kept
    this.end = 0; // position after the newest one; both only grow, and index the array through the mask
  }

  get capacity() {
    return this.data.length;
  }

  get length() {
    return this.end - this.start;
  }

  get free() {
    return this.capacity - this.length;
  }

  /** Appends all samples. Throws a RangeError rather than overwrite what has not been read. */
  write(samples) {
    if (samples.length > this.free)
      throw new RangeError(`ring: ${samples.length} samples do not fit into ${this.free}`);
    const at = this.end & this.mask;
    const first = Math.min(samples.length, this.capacity - at);
    // The usual case copies without a view, which would be garbage on the audio thread.
    if (first === samples.length) {
      this.data.set(samples, at);
    } else {
      this.data.set(samples.subarray(0, first), at);
      this.data.set(samples.subarray(first), 0);
    }
    this.end += samples.length;
  }

  /** Appends `count` zeros. */
  writeSilence(count) {
    if (count > this.free) throw new RangeError(`ring: ${count} samples do not fit into ${this.free}`);
    for (let i = 0; i < count; i++) this.data[(this.end + i) & this.mask] = 0;
    this.end += count;
  }

  /** The sample at an absolute position within [start, end). */
  at(position) {
    return this.data[position & this.mask];
  }

  /** Drops all samples before an absolute position. */
  dropBefore(position) {
    this.start = Math.max(this.start, Math.min(position, this.end));
  }
}
