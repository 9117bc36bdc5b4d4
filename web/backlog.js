// Audio of one utterance that has been received and not yet heard. Positions count from its first sample.

export class Backlog {
  #chunks = []; // [{start, samples}], adjacent, oldest first

  constructor() {
    this.received = 0; // position after the last sample
  }

  append(samples) {
    this.#chunks.push({ start: this.received, samples });
    this.received += samples.length;
  }

  /** A copy of at most `limit` samples from `position` on, none across a chunk's border; null if there are none. */
  copyFrom(position, limit) {
    const chunk = this.#chunks.find(({ start, samples }) => position >= start && position < start + samples.length);
    if (!chunk) return null;
    const from = position - chunk.start;
    return chunk.samples.slice(from, from + limit);
  }

  /** Forgets the chunks that end at or before `position`. */
  dropBefore(position) {
    while (this.#chunks.length && this.#chunks[0].start + this.#chunks[0].samples.length <= position)
      this.#chunks.shift();
  }
}
