// Writes a text piece by piece, as a language model would, at a chosen speed.

const TICK_MS = 30;
const LONGEST_PIECE = 6;

/** Cuts a text into pieces about as a tokenizer does: short runs, a space belongs to the word after it. */
export function pieces(text) {
  const pattern = new RegExp(
    `\\s*[\\p{L}\\p{M}\\p{N}]{1,${LONGEST_PIECE}}|\\s*[^\\s\\p{L}\\p{M}\\p{N}]{1,3}|\\s+`,
    'gu',
  );
  return text.match(pattern) ?? [];
}

export class Typist {
  #now;
  #later;
  #timer = null;
  #pieces = [];
  #due = 0; // characters that may be written by now, less those that were
  #last = 0;
  #run = 0; // counts starts and stops, so that a stopped run knows it

  /** @param {{now?: () => number, later?: (f: () => void, ms: number) => number}} clock for tests */
  constructor({ now = () => performance.now(), later = (f, ms) => setTimeout(f, ms) } = {}) {
    this.#now = now;
    this.#later = later;
    this.speed = 40; // characters a second; may change while it writes
  }

  get busy() {
    return this.#pieces.length > 0;
  }

  /** Calls `write(piece)` for each piece in turn, then `end()`. */
  start(text, write, end) {
    this.stop();
    this.#pieces = pieces(text);
    this.#due = 0;
    this.#last = this.#now();
    this.#tick(this.#run, write, end);
  }

  /** No more pieces, and no `end()`. */
  stop() {
    this.#run += 1;
    clearTimeout(this.#timer);
    this.#pieces = [];
  }

  // What is due follows the clock and not the count of ticks: in a hidden tab, where timers fire once a second,
  // the text comes in larger pieces but not more slowly.
  #tick(run, write, end) {
    const now = this.#now();
    this.#due += ((now - this.#last) / 1000) * this.speed;
    this.#last = now;
    while (this.#pieces.length && this.#pieces[0].length <= this.#due) {
      const piece = this.#pieces.shift();
      this.#due -= piece.length;
      write(piece);
      if (run !== this.#run) return; // `write` stopped it
    }
    if (this.busy) this.#timer = this.#later(() => this.#tick(run, write, end), TICK_MS);
    else end();
  }
}
