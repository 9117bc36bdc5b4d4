import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Speaker, wholeCharacters } from '../../web/speaker.js';

class FakePlayer extends EventTarget {
  sourceRate = 44100;
  bufferedMs = 0;
  positions = new Map();
  calls = [];

  begin(id) {
    this.calls.push(['begin', id]);
  }

  push(id, samples) {
    this.calls.push(['push', id, samples.length]);
  }

  end(id) {
    this.calls.push(['end', id]);
  }

  position(id) {
    return this.positions.get(id) ?? null;
  }

  stop() {
    return this.positions;
  }

  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Stands for the connection: notes what each context was told. */
const fakeClient = {
  open(listener) {
    const sent = [];
    const context = {
      listener,
      sent,
      text: (text) => sent.push(text),
      flush: () => sent.push('FLUSH'),
      done: () => sent.push('DONE'),
      cancel: (ms) => sent.push(['CANCEL', ms]),
    };
    fakeClient.last = context;
    return context;
  },
};

let player;
let speaker;
let states;

beforeEach(() => {
  player = new FakePlayer();
  speaker = new Speaker(fakeClient, player, { now: () => 0 });
  states = [];
  speaker.addEventListener('turn', ({ detail }) => states.push(detail.turn.state));
});

test('text goes out as it is written, then flush and done', () => {
  const turn = speaker.open();
  speaker.write(turn, 'Hello ');
  speaker.flush(turn);
  speaker.write(turn, 'world.');
  speaker.done(turn);
  speaker.write(turn, 'late');
  assert.deepEqual(turn.context.sent, ['Hello ', 'FLUSH', 'world.', 'DONE']);
});

test('a long text is sent no faster than it is spoken, and done only after it', () => {
  const turn = speaker.open();
  const text = 'All work and no play. '.repeat(200);
  speaker.write(turn, text);
  speaker.done(turn);
  const { sent, listener } = turn.context;
  let spoken = 0;
  while (spoken < text.length) {
    const length = sent.filter((piece) => piece !== 'DONE').join('').length;
    assert.ok(length - spoken <= 1000);
    assert.ok(length > spoken, 'it never stands still');
    listener.onSegment({ text: text.slice(spoken, Math.min(length, spoken + 22)), start_sample: 0 });
    spoken = Math.min(length, spoken + 22);
  }
  assert.equal(sent.at(-1), 'DONE');
  assert.equal(sent.slice(0, -1).join(''), text);
});

test('with 30 s of audio waiting no text is sent, until the player has caught up', () => {
  const turn = speaker.open();
  player.bufferedMs = 30_000;
  speaker.write(turn, 'Hello ');
  assert.deepEqual(turn.context.sent, []);
  player.bufferedMs = 29_000;
  player.emit('progress', { id: turn.id });
  assert.deepEqual(turn.context.sent, ['Hello ']);
});

test('stop cancels every turn with what was heard of it, and what still comes is ignored', () => {
  const first = speaker.open();
  speaker.write(first, 'a ');
  const second = speaker.open();
  speaker.write(second, 'b ');
  player.positions = new Map([
    [first.id, 22050],
    [second.id, 0],
  ]);
  speaker.stop();
  assert.deepEqual(first.context.sent.at(-1), ['CANCEL', 500]);
  assert.deepEqual(second.context.sent.at(-1), ['CANCEL', 0]);
  assert.equal(speaker.busy, false);
  first.context.listener.onEnd({ reason: 'cancelled', detail: {} });
  player.emit('finished', { id: first.id });
  assert.deepEqual([first.state, second.state], ['stopped', 'stopped']);
});

test('a turn that has ended on the server is spoken when it has been heard, not before', () => {
  const turn = speaker.open();
  speaker.write(turn, 'a ');
  speaker.done(turn);
  turn.context.listener.onAudio(new Float32Array(8192));
  turn.context.listener.onEnd({ reason: 'done', detail: { seed: 7, metrics: { rtf: 0.2 } } });
  assert.equal(turn.state, 'closing');
  assert.deepEqual(player.calls.slice(-2), [
    ['push', turn.id, 8192],
    ['end', turn.id],
  ]);
  player.emit('finished', { id: turn.id });
  assert.equal(turn.state, 'spoken');
  assert.equal(turn.seed, 7);
  assert.deepEqual(states, ['open', 'closing', 'closing', 'spoken']);
});

test('a failure is told, after what had arrived was heard', () => {
  const turn = speaker.open();
  speaker.write(turn, 'a ');
  turn.context.listener.onEnd({ reason: 'error', detail: { code: 'engine_failed', message: 'The engine failed.' } });
  player.emit('finished', { id: turn.id });
  assert.equal(turn.state, 'failed');
  assert.equal(turn.problem, 'The engine failed.');
});

test('a server that sends without end is stopped: the page holds no more than five minutes', () => {
  const turn = speaker.open();
  speaker.write(turn, 'a ');
  player.bufferedMs = 300_001;
  turn.context.listener.onAudio(new Float32Array(10));
  assert.equal(turn.state, 'stopped');
  assert.match(turn.problem, /more audio/);
});

test('pieces never cut a surrogate pair', () => {
  assert.equal(wholeCharacters('ab👍', 3), 'ab');
  assert.equal(wholeCharacters('ab👍', 4), 'ab👍');
  assert.equal(wholeCharacters('ab', 9), 'ab');
});
