import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Playback, State } from '../../web/playback.js';
import { Player } from '../../web/player.js';
import { RATE, ramp } from './audio.mjs';

/** An audio output with the real Playback behind it, whose clock and state the test moves. */
class Output {
  constructor() {
    this.context = {
      state: 'suspended',
      currentTime: 0,
      outputLatency: 0,
      resumes: 0,
      refusals: 0,
      onstatechange: null,
      resume: () => this.#resume(),
    };
    this.port = { onmessage: null, postMessage: (message) => this.#receive(message) };
    this.playback = new Playback(RATE, RATE);
    this.heard = [];
    this.largest = 0; // samples that waited in the worklet
    this.closed = false;
    this.close = () => (this.closed = true);
  }

  async #resume() {
    this.context.resumes += 1;
    if (this.context.refusals-- > 0) throw new Error('not allowed');
    this.state('running');
  }

  state(state) {
    this.context.state = state;
    this.context.onstatechange?.();
  }

  #receive({ type, serial, samples, prebuffer, offset }) {
    if (type === 'begin') this.playback.begin(prebuffer, offset);
    if (type === 'begin') this.serial = serial;
    if (type === 'push') this.playback.push(samples);
    if (type === 'end') this.playback.end();
    if (type === 'stop') this.playback.stop();
    this.largest = Math.max(this.largest, this.playback.ring.length);
  }

  /** Plays for `seconds`, reporting as the worklet does. */
  run(seconds) {
    for (let at = 0; at < seconds * RATE; at += 1024) {
      const block = new Float32Array(1024);
      this.playback.render(block);
      this.heard.push(...block);
      const { state, consumed, gaps } = this.playback;
      this.context.currentTime += 1024 / RATE;
      if (state === State.IDLE) continue;
      if (state === State.FINISHED) this.playback.stop();
      this.port.onmessage?.({ data: { serial: this.serial, state, consumed, gaps } });
    }
  }
}

let outputs;
let player;
let events;
let watch;

beforeEach(() => {
  outputs = [];
  events = [];
  const open = async () => {
    outputs.push(new Output());
    return outputs.at(-1);
  };
  player = new Player({ sourceRate: RATE, open, every: (f) => (watch = f) });
  for (const type of ['started', 'gap', 'finished', 'status']) {
    player.addEventListener(type, ({ detail }) => events.push([type, detail.id ?? detail.status]));
  }
});

/** Lets pending promises settle. */
const settle = () => new Promise(setImmediate);

async function unlocked() {
  player.unlock();
  await settle();
  events = [];
  return outputs.at(-1);
}

/** The ramp's samples that were heard at full level, as their numbers. */
const numbers = (heard) => heard.map((x) => Math.round(x * 2 ** 23)).filter((x) => x > 0);

test('an utterance is played whole, the worklet holding a few seconds of it at most', async () => {
  const output = await unlocked();
  player.begin('a');
  for (let i = 0; i < 20; i++) player.push('a', ramp(51200, 51200 * i));
  player.end('a');
  const seconds = (20 * 51200) / RATE;
  assert.equal(Math.round(player.bufferedMs), Math.round(seconds * 1000));
  output.run(seconds + 0.1);
  assert.deepEqual(events, [
    ['started', 'a'],
    ['finished', 'a'],
  ]);
  assert.ok(output.largest < 8 * RATE);
  const heard = numbers(output.heard).slice(221, -221);
  assert.ok(
    heard.every((x, i) => x === heard[0] + i),
    'every sample once, in order',
  );
  assert.equal(player.bufferedMs, 0);
  assert.equal(player.played, 20 * 51200);
});

test('utterances follow each other and are never mixed', async () => {
  const output = await unlocked();
  player.begin('a');
  player.begin('b');
  player.push(
    'b',
    ramp(8192).map(() => 0.25),
  );
  player.push(
    'a',
    ramp(8192).map(() => -0.25),
  );
  player.end('b');
  player.end('a');
  output.run(0.5);
  assert.deepEqual(events, [
    ['started', 'a'],
    ['finished', 'a'],
    ['started', 'b'],
    ['finished', 'b'],
  ]);
  const flips = output.heard.findLastIndex((x) => x < 0) < output.heard.findIndex((x) => x > 0);
  assert.ok(flips, 'all of a before all of b');
});

test('stop drops everything, tells what was heard, ignores what still comes, and never reports a finish', async () => {
  const output = await unlocked();
  player.begin('a');
  player.push('a', ramp(20 * 44100));
  output.run(1);
  const heard = player.stop();
  assert.ok(Math.abs(heard.get('a') - RATE) < 1100);
  for (let i = 0; i < 5; i++) player.push('a', ramp(51200));
  player.end('a');
  const from = output.heard.length;
  output.run(1);
  assert.ok(output.heard.slice(from + 221).every((x) => x === 0));
  assert.deepEqual(events, [['started', 'a']]);
  assert.equal(player.bufferedMs, 0);
  player.begin('b');
  player.push('b', ramp(8192));
  player.end('b');
  output.run(0.3);
  assert.deepEqual(events.slice(1), [
    ['started', 'b'],
    ['finished', 'b'],
  ]);
});

test('a gap is told once', async () => {
  const output = await unlocked();
  player.begin('a');
  player.push('a', ramp(8192));
  output.run(1);
  player.push('a', ramp(51200));
  player.end('a');
  output.run(1.5);
  assert.deepEqual(
    events.filter(([type]) => type === 'gap'),
    [['gap', 'a']],
  );
});

test('without a gesture it says so, keeps the audio, and starts at the beginning with the tap', async () => {
  player.begin('a');
  await settle();
  const [output] = outputs;
  output.context.state = 'suspended'; // what a browser does that allows no sound yet: resume() has no effect
  player.push('a', ramp(8192));
  player.end('a');
  watch();
  assert.equal(player.status, 'blocked');
  player.unlock();
  await settle();
  assert.equal(player.status, 'running');
  output.run(0.3);
  assert.ok(Math.abs(numbers(output.heard).length - 8192) < 221);
});

test('a call: no resume while interrupted, one after it; if that is refused, a tap helps', async () => {
  const output = await unlocked();
  player.begin('a');
  player.push('a', ramp(5 * RATE));
  output.run(1);
  output.context.resumes = 0;
  output.state('interrupted');
  for (let i = 0; i < 40; i++) watch();
  player.unlock();
  player.revive();
  assert.equal(output.context.resumes, 0);
  assert.equal(player.status, 'interrupted');
  output.context.refusals = 1;
  output.state('suspended');
  await settle();
  assert.equal(output.context.resumes, 1);
  assert.equal(player.status, 'blocked');
  player.unlock();
  await settle();
  assert.equal(player.status, 'running');
});

test('a running context whose clock stands still is replaced within a second or so, and no word is lost', async () => {
  const output = await unlocked();
  player.begin('a');
  player.push('a', ramp(3 * RATE));
  player.end('a');
  output.run(1);
  for (let i = 0; i < 5; i++) watch(); // 250 ms each
  await settle();
  assert.equal(outputs.length, 2);
  assert.ok(output.closed);
  const next = outputs[1];
  assert.equal(next.context.state, 'running');
  next.run(2.2);
  const last = numbers(output.heard).at(-1);
  const first = numbers(next.heard)[221] - 221;
  assert.ok(Math.abs(first - last) < 1100, `${last} then ${first}`); // since the last report: 21 ms at most
  assert.deepEqual(
    events.filter(([type]) => type !== 'status'),
    [
      ['started', 'a'],
      ['finished', 'a'],
    ],
  );
});

test('a clock that moves is left alone, however seldom one looks', async () => {
  const output = await unlocked();
  player.begin('a');
  player.push('a', ramp(8 * RATE));
  for (let i = 0; i < 20; i++) {
    output.run(0.25);
    watch();
  }
  assert.equal(outputs.length, 1);
});

test('a browser without audio says so and does not throw', async () => {
  const open = async () => {
    throw new Error('no device');
  };
  player = new Player({ open, every: () => {} });
  player.addEventListener('status', ({ detail }) => events.push(detail.message));
  player.begin('a');
  await settle();
  assert.match(events[0], /no device/);
});
