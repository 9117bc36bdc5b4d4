import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ring } from '../../web/ring.js';

test('capacity is rounded up to a power of two', () => {
  assert.equal(new Ring(5).capacity, 8);
  assert.equal(new Ring(8).capacity, 8);
});

test('samples come back at their positions after many wraps, for any piece length', () => {
  const ring = new Ring(64);
  let written = 0;
  for (let piece = 1; piece <= 60; piece++) {
    ring.write(Float32Array.from({ length: piece }, (_, i) => written + i));
    written += piece;
    for (let position = ring.start; position < ring.end; position++) assert.equal(ring.at(position), position);
    ring.dropBefore(written);
  }
  assert.equal(ring.length, 0);
});

test('what does not fit is refused and changes nothing', () => {
  const ring = new Ring(8);
  ring.write(new Float32Array(5).fill(1));
  assert.throws(() => ring.write(new Float32Array(4)), /4 samples do not fit into 3/);
  assert.throws(() => ring.writeSilence(4), RangeError);
  assert.equal(ring.length, 5);
});

test('dropping is bounded by what was written', () => {
  const ring = new Ring(8);
  ring.writeSilence(3);
  ring.dropBefore(100);
  assert.equal(ring.start, 3);
  ring.dropBefore(1);
  assert.equal(ring.start, 3);
});
