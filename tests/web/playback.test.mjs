import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Playback, State } from '../../web/playback.js';
import { RATE, largestStep, ramp, renderUntil, rms, tone } from './audio.mjs';

const FADE = 221; // 5 ms at 44.1 kHz
const finished = (playback) => () => playback.state === State.FINISHED;

function begun(rate = RATE, prebuffer = 0) {
  const playback = new Playback(RATE, rate);
  playback.begin(prebuffer);
  return playback;
}

/** Ratio of output to input where the input is known to be non-zero: the gain that was applied. */
const gains = (output, input) => Array.from(input, (x, i) => output[i] / x);

for (const rate of [16000, 44100, 48000, 96000]) {
  test(`a tone in the codec's chunk sizes is whole and without steps at ${rate}`, () => {
    const playback = begun(rate);
    const chunks = [8192, 51200, 51200, 33000];
    let start = 0;
    for (const count of chunks) {
      playback.push(tone(count, { start }));
      start += count;
    }
    playback.end();
    const output = renderUntil(playback, finished(playback));
    const length = Math.floor((start * rate) / RATE + 0.5);
    assert.ok(output.length - length < 128 && output.length >= length);
    assert.ok(rms(output.subarray(length)) < 1e-9, 'silence after the end');
    const slope = (0.5 * 2 * Math.PI * 440) / rate;
    assert.ok(largestStep(output) < 1.02 * slope + 0.5 / (0.005 * rate), 'no step beyond the tone and the ramps');
    const expected = tone(length, { rate });
    const middle = [Math.round(0.02 * rate), length - Math.round(0.02 * rate)];
    const error = output.subarray(...middle).map((x, i) => x - expected[middle[0] + i]);
    assert.ok(rms(error) < 2e-3, `phase kept over every border: ${rms(error)}`);
  });
}

test('both edges are ramps of 5 ms, everything between is untouched', () => {
  const playback = begun();
  const input = ramp(5000);
  playback.push(input);
  playback.end();
  const gain = gains(renderUntil(playback, finished(playback)), input);
  assert.ok(Math.abs(gain[0] - 1 / FADE) < 1e-6);
  assert.ok(gain.slice(FADE, 5000 - FADE).every((g) => g === 1));
  assert.equal(gain[4999], 0);
});

test('running dry is a ramp to silence, one gap, and no sample is lost or comes twice', () => {
  const playback = begun();
  playback.push(ramp(8192));
  const first = renderUntil(playback, () => playback.state === State.WAITING && playback.gaps === 1);
  assert.ok(largestStep(first) <= 8192 / 2 ** 23 / FADE + 2 ** -22);
  const silence = renderUntil(playback, () => false, 12800);
  assert.equal(rms(silence), 0);
  playback.push(ramp(51200, 8192));
  playback.end();
  const second = renderUntil(playback, finished(playback));
  const kept = playback.resampler.half; // samples at the edge that waited for their right neighbours
  const played = 8192 - kept;
  assert.ok(first.length - played < 128);
  const gain = gains(second, ramp(51200 + kept, played));
  assert.ok(
    gain.slice(FADE, -FADE).every((g) => g === 1),
    'goes on with the sample after the last one',
  );
  assert.equal(playback.gaps, 1);
});

test('after a gap it waits for a refill instead of stuttering', () => {
  const playback = begun();
  playback.push(tone(8192));
  renderUntil(playback, () => playback.gaps === 1);
  for (let i = 0; i < 3; i++) {
    playback.push(tone(2048)); // 46 ms each: less than the refill of 180 ms
    renderUntil(playback, () => false, 256);
    assert.equal(playback.state, State.WAITING);
  }
  playback.push(tone(2048));
  renderUntil(playback, () => false, 128);
  assert.equal(playback.state, State.PLAYING);
});

test('a refill that never comes does not hold back what is there', () => {
  const playback = begun();
  playback.push(tone(8192));
  renderUntil(playback, () => playback.gaps === 1);
  playback.push(tone(2048));
  const waited = renderUntil(playback, () => playback.state === State.PLAYING, RATE);
  assert.ok(Math.abs(waited.length / RATE - 0.3) < 0.01);
});

test('gaps in the network longer than the buffer are heard once each, the others not at all', () => {
  const playback = begun();
  let start = 0;
  const feed = (count) => {
    playback.push(tone(count, { start }));
    start += count;
  };
  const pause = (ms) => renderUntil(playback, () => false, (ms / 1000) * RATE);
  feed(22050); // half a second ahead
  const pauses = [50, 200, 800, 200, 50, 800, 50, 200];
  const heard = pauses.map((ms) => {
    const before = playback.gaps;
    pause(ms);
    const gap = playback.gaps - before;
    feed(22050 - Math.min(22050, playback.ring.length)); // the network catches up: half a second ahead again
    pause(20);
    return gap;
  });
  assert.deepEqual(
    heard,
    pauses.map((ms) => (ms > 500 ? 1 : 0)),
  );
});

test('the hint of the server is kept: nothing plays before the prebuffer is there', () => {
  const playback = begun(RATE, 0.5);
  playback.push(tone(8192));
  assert.equal(rms(renderUntil(playback, () => false, 1280)), 0);
  playback.push(tone(20000, { start: 8192 }));
  assert.ok(rms(renderUntil(playback, () => false, 1280)) > 0.2);
});

for (const after of [0, 10, 100, 500]) {
  test(`stop is a ramp of at most 5 ms; an utterance ${after} ms later is at full level from its start`, () => {
    const playback = begun();
    playback.push(tone(3 * RATE));
    const before = renderUntil(playback, () => false, RATE);
    playback.stop();
    const silence = renderUntil(playback, () => false, Math.max(128, (after / 1000) * RATE));
    playback.begin();
    playback.push(tone(RATE, { hz: 660 }));
    const next = renderUntil(playback, () => false, RATE / 5);
    const joined = Float32Array.from([...before, ...silence, ...next]);
    assert.ok(largestStep(joined) < 0.05, `step ${largestStep(joined)}`);
    if (silence.length > 2 * FADE) assert.equal(rms(silence.subarray(FADE + 128)), 0);
    const decibels = 20 * Math.log10(rms(next) / rms(tone(RATE / 5, { hz: 660 })));
    assert.ok(Math.abs(decibels) < 1, `${decibels} dB`);
  });
}

test('sixty short utterances: the last starts as fast as the first, each is played whole', () => {
  const playback = new Playback(RATE, 48000);
  const delays = [];
  for (let i = 0; i < 60; i++) {
    playback.begin();
    playback.push(tone(4410));
    playback.end();
    delays.push(renderUntil(playback, () => playback.state !== State.WAITING).length);
    renderUntil(playback, finished(playback));
    assert.equal(playback.produced, 4800);
  }
  assert.ok(delays.every((delay) => delay === 128));
});

test('an utterance without audio ends', () => {
  const playback = begun();
  playback.end();
  renderUntil(playback, finished(playback), 1280);
  assert.equal(playback.state, State.FINISHED);
});

test('an utterance goes on from an offset on a new output', () => {
  const playback = new Playback(RATE, RATE);
  playback.begin(0, 10000);
  playback.push(tone(5000));
  playback.end();
  renderUntil(playback, finished(playback));
  assert.equal(playback.consumed, 15000);
});
