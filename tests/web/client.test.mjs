import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { SpeechClient } from '../../web/client.js';
import { binary, READY, Socket, start } from './socket.mjs';

let log;
let client;
let retries;

const listener = (name) => ({
  onSegment: ({ text }) => log.push([name, 'segment', text]),
  onAudio: (samples, first) => log.push([name, 'audio', first, Array.from(samples, (x) => Math.round(x * 32768))]),
  onEnd: ({ reason }) => log.push([name, 'end', reason]),
});

beforeEach(() => {
  Socket.all = [];
  log = [];
  retries = [];
  client = new SpeechClient(
    'ws://x/v1/stream',
    {
      onStatus: ({ state }) => log.push(['status', state]),
      onRefused: ({ code }) => log.push(['refused', code]),
      onFault: (text) => log.push(['fault', text]),
    },
    { WebSocket: Socket, later: (f, ms) => retries.push({ f, ms }) },
  );
});

/** A connected client, with nothing logged or sent but what follows. */
function connected() {
  client.connect();
  const socket = Socket.all.at(-1);
  socket.receive(READY);
  log = [];
  return socket;
}

test('the config goes out before the first text, once, and asks for headers and the native rate', () => {
  const socket = connected();
  client.configure({ voice: 'anna', seed: null });
  client.open().text('Hello');
  client.open().text('again');
  assert.deepEqual(socket.take(), [
    {
      type: 'session.config',
      framing: 'header',
      response_format: 'pcm',
      sample_rate: 44100,
      voice: 'anna',
      seed: null,
    },
    { type: 'input.text', text: 'Hello', context_id: 'turn-1' },
    { type: 'input.text', text: 'again', context_id: 'turn-2' },
  ]);
});

test('text, flush, done; then nothing more of that context', () => {
  const socket = connected();
  const context = client.open({}, { language: 'en' });
  for (const act of [
    () => context.text('a'),
    () => context.text(''),
    () => context.text('b'),
    () => context.flush('f'),
    () => context.done(),
    () => context.text('late'),
    () => context.flush(),
    () => context.done(),
  ])
    act();
  assert.deepEqual(socket.take().slice(1), [
    { type: 'input.text', text: 'a', language: 'en', context_id: 'turn-1' },
    { type: 'input.text', text: 'b', context_id: 'turn-1' },
    { type: 'input.flush', flush_id: 'f', context_id: 'turn-1' },
    { type: 'input.done', context_id: 'turn-1' },
  ]);
});

test('a changed config waits for the open contexts, and what is opened after it waits with it', () => {
  const socket = connected();
  client.open().text('a');
  socket.take();
  client.configure({ temperature: 0.5 });
  const second = client.open();
  second.text('b');
  second.done();
  assert.deepEqual(socket.take(), []);
  socket.receive({ type: 'session.done', context_id: 'turn-1', reason: 'done' });
  assert.deepEqual(
    socket.take().map(({ type }) => type),
    ['session.config', 'input.text', 'input.done'],
  );
});

test('samples, segments and the end arrive in order', () => {
  const socket = connected();
  client.open(listener('a')).text('Hi');
  socket.receive(start('turn-1', 7));
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: 'Hi', start_sample: 0 });
  socket.receive(binary({ number: 7, values: [1, -2] }));
  socket.receive(binary({ number: 7, sequence: 1, first: 2, values: [3] }));
  socket.receive({ type: 'audio.done', context_id: 'turn-1', samples: 3 });
  socket.receive({ type: 'session.done', context_id: 'turn-1', reason: 'done' });
  socket.receive({ type: 'session.done', context_id: 'turn-1', reason: 'done' });
  assert.deepEqual(log, [
    ['a', 'segment', 'Hi'],
    ['a', 'audio', 0, [1, -2]],
    ['a', 'audio', 2, [3]],
    ['a', 'end', 'done'],
  ]);
});

test('32-bit floats are read too', () => {
  const socket = connected();
  client.open({ onAudio: (samples) => log.push([...samples]) }).text('Hi');
  socket.receive(start('turn-1', 0, 'f32'));
  const header = new Uint8Array(binary({ values: [], count: 2 }));
  socket.receive(Uint8Array.from([...header, ...new Uint8Array(Float32Array.of(0.25, -1).buffer)]).buffer);
  assert.deepEqual(log, [[0.25, -1]]);
});

test('after cancel nothing of the context is delivered, though the server still sends; the next one is whole', () => {
  const socket = connected();
  const first = client.open(listener('a'));
  first.text('Hi');
  socket.receive(start('turn-1', 0));
  socket.receive(binary({ number: 0 }));
  log = [];
  first.cancel(12.4);
  assert.deepEqual(socket.take().at(-1), { type: 'input.cancel', playback_offset_ms: 12, context_id: 'turn-1' });
  client.open(listener('b')).text('Next');
  const late = () =>
    [1, 2, 3, 4, 5].forEach((sequence) => socket.receive(binary({ number: 0, sequence, first: 3 * sequence })));
  late();
  socket.receive({ type: 'audio.segment', context_id: 'turn-1', text: 'late', start_sample: 0 });
  socket.receive({ type: 'input.cancelled', context_id: 'turn-1' });
  late();
  socket.receive(start('turn-2', 1));
  late();
  socket.receive(binary({ number: 1, values: [9] }));
  assert.deepEqual(log, [
    ['a', 'end', 'cancelled'],
    ['b', 'audio', 0, [9]],
  ]);
});

test('a context that ends while its cancel is on the way counts as cancelled, once', () => {
  const socket = connected();
  const context = client.open(listener('a'));
  context.text('Hi');
  context.cancel(0);
  context.cancel(0);
  socket.receive({ type: 'session.done', context_id: 'turn-1', reason: 'done' });
  context.cancel(0);
  assert.deepEqual(log, [['a', 'end', 'cancelled']]);
  assert.equal(socket.take().filter(({ type }) => type === 'input.cancel').length, 1);
});

test('cancelling a context that the server never heard of needs no answer', () => {
  const socket = connected();
  client.open(listener('a')).cancel(0);
  assert.deepEqual(log, [['a', 'end', 'cancelled']]);
  assert.ok(socket.take().every(({ type }) => type === 'session.config'));
});

test('faults in the framing are told and never thrown', () => {
  const socket = connected();
  client.open(listener('a')).text('Hi');
  socket.receive(start('turn-1'));
  const faults = [
    [binary({ magic: 'RI' }), /starts with "RI"/],
    [binary({ version: 2 }), /version 2/],
    [new ArrayBuffer(3), /3 bytes has no header/],
    [binary({ values: [1], count: 2 }), /26 bytes, its header says 28/],
  ];
  for (const [message, expected] of faults) {
    socket.receive(message);
    const [kind, text] = log.pop();
    assert.equal(kind, 'fault');
    assert.match(text, expected);
  }
  socket.receive(binary({}));
  socket.receive(binary({})); // again
  socket.receive(binary({ sequence: 2, first: 6 })); // one lost
  const kinds = log.map(([who, what]) => (who === 'fault' ? what : who));
  assert.deepEqual(kinds, ['a', 'turn-1: audio message 0 came twice', 'turn-1: audio lost before message 2', 'a']);
});

test('unknown and malformed messages are survived', () => {
  const socket = connected();
  client.open(listener('a')).text('Hi');
  for (const message of [
    '{',
    'null',
    '7',
    '[]',
    '{}',
    { type: 'x.new' },
    { type: 'x.new', context_id: 'turn-1' },
    { type: 'toString', context_id: 'turn-1' },
    start('turn-1', 0, 'opus'),
    { type: 'audio.segment', context_id: 'nobody' },
  ]) {
    socket.receive(message);
  }
  socket.receive(start('turn-1'));
  socket.receive(binary({ values: [5] }));
  assert.deepEqual(
    log.filter(([who]) => who === 'a'),
    [['a', 'audio', 0, [5]]],
  );
});

test('an error with the context ends it; a refusal is told; text refused after a stop is no news', () => {
  const socket = connected();
  client.open(listener('a')).text('Hi');
  socket.receive({ type: 'error', code: 'bad_value', message: 'm', fatal: false });
  socket.receive({ type: 'error', code: 'context_ended', message: 'm', fatal: false, about_context_id: 'turn-0' });
  socket.receive({ type: 'error', code: 'engine_failed', message: 'm', fatal: false, context_id: 'turn-1' });
  assert.deepEqual(log, [
    ['refused', 'bad_value'],
    ['a', 'end', 'error'],
  ]);
});

test('a lost connection ends what had begun to speak, and is tried again ever later', () => {
  const socket = connected();
  client.open(listener('a')).text('Hi');
  socket.receive(start('turn-1', 0));
  socket.onclose({ code: 1006, reason: '' });
  client.open(listener('b')).text('held');
  assert.deepEqual(log, [
    ['a', 'end', 'lost'],
    ['status', 'waiting'],
  ]);
  const pauses = [];
  for (let i = 0; i < 8; i++) {
    const { f, ms } = retries.shift();
    pauses.push(ms);
    f();
    Socket.all.at(-1).onclose({ code: 1006, reason: '' });
  }
  assert.ok(pauses[0] <= 500 && pauses.at(-1) >= 5000 && pauses.every((ms) => ms <= 10_000), String(pauses));
  retries.shift().f();
  const again = Socket.all.at(-1);
  again.receive(READY);
  assert.deepEqual(
    again.take().map(({ type }) => type),
    ['session.config', 'input.text'],
  );
  again.receive(start('turn-2', 0)); // numbers start anew with the connection
  again.receive(binary({ number: 0, values: [4] }));
  assert.deepEqual(log.at(-1), ['b', 'audio', 0, [4]]);
});

test('what a server that ends does not take is said to the next one; what had begun there fails', () => {
  const socket = connected();
  const [begun, late] = [client.open(listener('begun')), client.open(listener('late'))];
  begun.text('Begun.');
  socket.receive(start('turn-1', 0));
  late.text('Too');
  const error = { type: 'error', code: 'shutting_down', message: 'the server is shutting down', fatal: false };
  socket.receive({ ...error, context_id: 'turn-2' });
  socket.take();
  late.text(' late.');
  socket.receive({ ...error, code: 'context_ended', about_context_id: 'turn-2' });
  assert.deepEqual(socket.take(), []);
  socket.receive({ ...error, context_id: 'turn-1' });
  socket.receive({ ...error, fatal: true });
  socket.onclose({ code: 1012, reason: 'shutting_down' });
  retries.at(-1).f();
  const next = Socket.all.at(-1);
  next.receive(READY);
  assert.deepEqual(
    next.take().map(({ text, context_id: id }) => [id, text]),
    [
      [undefined, undefined], // session.config
      ['turn-2', 'Too'],
      ['turn-2', ' late.'],
    ],
  );
  assert.deepEqual(
    log.filter(([name]) => name !== 'status'),
    [
      ['begun', 'end', 'error'],
      ['refused', 'shutting_down'],
    ],
  );
});

test('close is for good', () => {
  const socket = connected();
  client.open(listener('a')).text('Hi');
  client.close();
  assert.deepEqual(log, [
    ['a', 'end', 'closed'],
    ['status', 'closed'],
  ]);
  assert.equal(socket.onclose, null);
  assert.equal(retries.length, 0);
});

test('a key goes along as a subprotocol, beside the one that the server picks', () => {
  client.connect();
  assert.deepEqual(Socket.all.at(-1).protocols, ['audio8.v1']);
  new SpeechClient('ws://host', {}, { WebSocket: Socket, key: '~~?/é=' }).connect();
  assert.deepEqual(Socket.all.at(-1).protocols, ['audio8.v1', 'audio8.key.fn4_L8OpPQ']);
});
