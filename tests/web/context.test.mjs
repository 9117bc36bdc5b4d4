import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { SpeechClient } from '../../web/client.js';
import { binary, READY, Socket, start } from './socket.mjs';

let log;
let client;
let retries;

const listener = (name) => ({ onEnd: ({ reason }) => log.push([name, 'end', reason]) });

beforeEach(() => {
  Socket.all = [];
  log = [];
  retries = [];
  client = new SpeechClient('ws://x', {}, { WebSocket: Socket, later: (f) => retries.push({ f }) });
});

/** A connected client. */
function connected() {
  client.connect();
  Socket.all.at(-1).receive(READY);
  return Socket.all.at(-1);
}

/** The connection breaks off and comes back. */
function reconnected() {
  Socket.all.at(-1).onclose({ code: 1006, reason: '' });
  retries.shift().f();
  const socket = Socket.all.at(-1);
  socket.receive(READY);
  return socket;
}

test('what was not spoken is said again on a new connection, with its opening, but not for ever', () => {
  connected();
  const context = client.open(listener('a'), { voice: 'bo' });
  context.text('Hi ');
  context.text('you');
  context.done();
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(reconnected().take().slice(1), [
      { type: 'input.text', text: 'Hi ', voice: 'bo', context_id: 'turn-1' },
      { type: 'input.text', text: 'you', context_id: 'turn-1' },
      { type: 'input.done', context_id: 'turn-1' },
    ]);
  }
  log = [];
  reconnected();
  assert.deepEqual(log[0], ['a', 'end', 'lost']);
});

test('text goes out as far as the server has room for it', () => {
  const socket = connected();
  const context = client.open(listener('a'));
  context.text('0123456789abcdefghijKLMNO');
  context.done();
  const texts = () => socket.take().flatMap(({ text }) => text ?? []);
  assert.deepEqual(texts(), ['0123456789']);
  socket.receive(start('turn-1'));
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: '0123', start_sample: 0 });
  assert.deepEqual(texts(), ['abcd']);
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: '456789abcd', start_sample: 0 });
  assert.deepEqual(texts(), ['efghijKLMN']);
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: 'e', start_sample: 0 });
  assert.deepEqual(
    socket.take().map(({ type, text }) => text ?? type),
    ['O', 'input.done'],
  );
});

test('more contexts than the server takes wait for one to end', () => {
  const socket = connected();
  for (let i = 0; i < 4; i++) client.open().text('Hi');
  const ids = () => socket.take().flatMap(({ type, context_id: id }) => (type === 'input.text' ? id : []));
  assert.deepEqual(ids(), ['turn-1', 'turn-2', 'turn-3']);
  socket.receive({ type: 'session.done', context_id: 'turn-2', reason: 'done' });
  assert.deepEqual(ids(), ['turn-4']);
});

test('a refusal of a part of a context ends it', () => {
  const socket = connected();
  client.open(listener('a'), { seed: -1 }).text('Hi');
  socket.receive({ type: 'error', code: 'bad_value', message: 'm', fatal: false, about_context_id: 'turn-1' });
  assert.deepEqual(log, [['a', 'end', 'error']]);
  assert.deepEqual(socket.take().at(-1), { type: 'input.cancel', context_id: 'turn-1' });
});

test('a context knows what was heard of it, and a cancel accounts for all its text', () => {
  const socket = connected();
  const ends = [];
  const context = client.open({ onEnd: ({ detail }) => ends.push(detail) });
  context.text('One two. Three four.');
  socket.receive({ ...start('turn-1'), sample_rate: 1000 });
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: 'One two.', start_sample: 0 });
  socket.receive(binary({ values: Array(800).fill(0) }));
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: ' Thre', start_sample: 800 });
  assert.deepEqual(context.heard(799), { textSpoken: 'One ', textRemaining: 'two. Three four.' });
  assert.deepEqual(context.heard(800), { textSpoken: 'One two.', textRemaining: ' Three four.' });
  assert.deepEqual(context.heard(0), { textSpoken: '', textRemaining: 'One two. Three four.' });
  context.cancel(500);
  socket.receive({ type: 'input.cancelled', context_id: 'turn-1', text_spoken: 'One ', text_remaining: 'two. Three' });
  const never = client.open({ onEnd: ({ detail }) => ends.push(detail) });
  client.close();
  never.cancel(5);
  assert.equal(ends[0].text_remaining, 'two. Three four.');
  assert.equal(ends.length, 2);
});
