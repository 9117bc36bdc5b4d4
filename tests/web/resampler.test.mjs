import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Resampler } from '../../web/resampler.js';
import { Ring } from '../../web/ring.js';
import { RATE, rms, tone } from './audio.mjs';

/** Resamples `input`, written in `pieces`, to the end. */
function resample(input, to, pieces = [input.length]) {
  const resampler = new Resampler(RATE, to);
  const ring = new Ring(4 * RATE);
  const lead = resampler.half - 1;
  const output = [];
  ring.writeSilence(lead);
  const drain = (limit) => {
    while (resampler.ready(ring.end - lead) > 0 && output.length < limit) output.push(resampler.next(ring, lead));
    ring.dropBefore(resampler.whole);
  };
  let at = 0;
  for (let i = 0; at < input.length; i++) {
    const piece = pieces[i % pieces.length];
    ring.write(input.subarray(at, at + piece));
    at += piece;
    drain(Infinity);
  }
  ring.writeSilence(resampler.half + 1);
  drain(resampler.outputLength(input.length));
  return Float32Array.from(output);
}

test('equal rates are an exact identity', () => {
  const input = tone(5000);
  assert.deepEqual(resample(input, RATE), input);
});

for (const rate of [8000, 16000, 22050, 48000, 96000, 192000]) {
  test(`440 Hz stays 440 Hz at ${rate}, to the phase`, () => {
    const output = resample(tone(RATE), rate, [8192, 51200]);
    assert.equal(output.length, rate);
    const margin = Math.round(rate / 100); // the ends, where the kernel reaches into silence
    const expected = tone(rate, { rate });
    const difference = output.subarray(margin, -margin).map((x, i) => x - expected[margin + i]);
    assert.ok(rms(difference) < 2e-3, `error ${rms(difference)}`);
  });

  test(`pieces make no difference at ${rate}`, () => {
    const input = tone(30000, { hz: 1234 });
    assert.deepEqual(resample(input, rate, [1, 777, 8192]), resample(input, rate));
  });
}

test('what the lower rate cannot hold is removed', () => {
  assert.ok(rms(resample(tone(RATE, { hz: 12000 }), 16000).subarray(200, -200)) < 1e-3);
});

test('the length is exact, without drift, over an hour', () => {
  const resampler = new Resampler(RATE, 48000);
  const zeros = { at: () => 0 };
  for (let i = 0; i < 48000; i++) resampler.next(zeros, 0);
  assert.deepEqual([resampler.whole, resampler.phase], [RATE, 0]); // after each second it is where it was
  assert.equal(resampler.outputLength(3600 * RATE), 3600 * 48000);
});
