// The live waveform: what was heard to the left of the playhead, what is buffered to the right of it.

const BAR_SECONDS = 0.04;
const BAR_PX = 5; // bar and gap
const PLAYHEAD = 0.6; // of the width
const KEPT_SECONDS = 60; // of bars behind the playhead

export class Waveform {
  #canvas;
  #barSamples;
  #bars = []; // loudest sample of each bar, 0 … 1
  #dropped = 0; // bars forgotten at the front
  #length = 0; // samples received
  #colours = null;
  #drawn = '';
  #still = matchMedia('(prefers-reduced-motion: reduce)');

  constructor(canvas, sampleRate) {
    this.#canvas = canvas;
    this.#barSamples = Math.round(BAR_SECONDS * sampleRate);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (this.#colours = null));
  }

  /** Samples that were received, to be played after those before them. */
  push(samples) {
    for (let i = 0; i < samples.length; i++) {
      const bar = Math.floor((this.#length + i) / this.#barSamples) - this.#dropped;
      this.#bars[bar] = Math.max(this.#bars[bar] ?? 0, Math.abs(samples[i]));
    }
    this.#length += samples.length;
  }

  /** Playback was stopped at `position`: what would have followed will not come. */
  cut(position) {
    this.#length = position;
    this.#bars.length = Math.max(0, Math.ceil(position / this.#barSamples) - this.#dropped);
  }

  /** Draws with the playhead at `position` (samples). Does nothing if the picture would be the same. */
  draw(position) {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const played = position / this.#barSamples;
    const state = [
      width,
      height,
      devicePixelRatio,
      Math.round(played * BAR_PX),
      this.#length,
      this.#colours !== null,
    ].join();
    if (state === this.#drawn) return;
    this.#drawn = state;
    this.#forget(played);
    this.#colours ??= this.#readColours();
    const context = this.#prepare(width, height);
    this.#drawBars(context, width, height, played);
  }

  #forget(played) {
    const extra = Math.floor(played) - Math.round(KEPT_SECONDS / BAR_SECONDS) - this.#dropped;
    if (extra <= 0) return;
    this.#bars.splice(0, extra);
    this.#dropped += extra;
  }

  #readColours() {
    const style = getComputedStyle(this.#canvas);
    return {
      heard: style.getPropertyValue('--accent'),
      ahead: style.getPropertyValue('--wave-ahead'),
      line: style.getPropertyValue('--wave-line'),
    };
  }

  #prepare(width, height) {
    const scale = devicePixelRatio;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    const context = this.#canvas.getContext('2d');
    context.scale(scale, scale);
    return context;
  }

  #drawBars(context, width, height, played) {
    const shown = Math.ceil(width / BAR_PX);
    // With reduced motion the picture stands still and the playhead walks over it, page after page.
    const left = this.#still.matches ? Math.floor(played / shown) * shown : played - PLAYHEAD * shown;
    const middle = height / 2;
    for (let bar = Math.floor(left); bar <= left + shown; bar++) {
      const x = (bar - left) * BAR_PX;
      const peak = this.#bars[bar - this.#dropped] ?? 0;
      const half = Math.max(1.25, Math.sqrt(peak) * (middle - 6)); // the root lets quiet speech be seen
      context.fillStyle = peak === 0 ? this.#colours.line : bar < played ? this.#colours.heard : this.#colours.ahead;
      context.globalAlpha = Math.min(1, (x + 8) / 90, (width - x + 8) / 90); // soft edges
      context.beginPath();
      context.roundRect(x, middle - half, BAR_PX - 2, 2 * half, 1.5);
      context.fill();
    }
    context.globalAlpha = this.#bars.length ? 1 : 0; // there is nothing to be played yet
    context.fillStyle = this.#colours.heard;
    context.fillRect((played - left) * BAR_PX - 1, 10, 1.5, height - 20);
  }
}
