// What the tests of the page's audio share.

export const RATE = 44100;

/** `count` samples of a sine from sample `start` on. */
export function tone(count, { rate = RATE, hz = 440, start = 0, level = 0.5 } = {}) {
  return Float32Array.from({ length: count }, (_, i) => level * Math.sin((2 * Math.PI * hz * (start + i)) / rate));
}

/** 1, 2, 3 … scaled so that every sample is exact in a float: shows loss, repeats and order. */
export function ramp(count, start = 0) {
  return Float32Array.from({ length: count }, (_, i) => (start + i + 1) / 2 ** 23);
}

export function largestStep(samples) {
  let largest = 0;
  for (let i = 1; i < samples.length; i++) largest = Math.max(largest, Math.abs(samples[i] - samples[i - 1]));
  return largest;
}

export const rms = (samples) => Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length);

/** Renders blocks of 128 until `done()` or `limit` samples; returns everything rendered. */
export function renderUntil(playback, done, limit = 20 * RATE) {
  const blocks = [];
  for (let count = 0; !done() && count < limit; count += 128) {
    const block = new Float32Array(128);
    playback.render(block);
    blocks.push(block);
  }
  const samples = new Float32Array(128 * blocks.length);
  blocks.forEach((block, i) => samples.set(block, 128 * i));
  return samples;
}
