import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { say, SpeechError } from '../../web/say.js';

/** Stands for the client: keeps each context's listener and what it was told. */
class FakeClient {
  open(listener, opening) {
    const told = [];
    const context = {
      listener,
      opening,
      told,
      state: 'open',
      segments: [{ text: 'Hi', start: 0 }],
      text: (text) => told.push(text),
      flush: () => told.push('FLUSH'),
      done: () => context.state === 'open' && told.push('DONE'),
      heard: (ms) => ({ textSpoken: `${ms}`, textRemaining: '' }),
      cancel(ms) {
        told.push(['CANCEL', ms]);
        this.state = 'cancelled';
      },
    };
    this.context = context;
    return context;
  }
}

let client;
beforeEach(() => (client = new FakeClient()));

const SAMPLES = Float32Array.of(0.5);

test('audio is iterated with its position until all is spoken', async () => {
  const turn = say(client, 'Hi', { voice: 'bo' });
  const { listener, opening } = client.context;
  assert.deepEqual(opening, { voice: 'bo' });
  listener.onAudio(SAMPLES, 0);
  const waiting = (async () => {
    const starts = [];
    for await (const { samples, start } of turn) starts.push([samples[0], start]);
    return starts;
  })();
  await new Promise(setImmediate);
  listener.onAudio(SAMPLES, 1);
  listener.onEnd({ reason: 'done', detail: {} });
  assert.deepEqual(await waiting, [
    [0.5, 0],
    [0.5, 1],
  ]);
  assert.deepEqual(client.context.told, ['Hi', 'DONE']);
  assert.deepEqual(turn.segments, [{ text: 'Hi', start: 0 }]);
  assert.deepEqual(await turn.ended, { reason: 'done', detail: {} });
});

test('pieces go out as they come', async () => {
  async function* pieces() {
    yield 'a';
    yield 'b';
  }
  const turn = say(client, pieces());
  client.context.listener.onEnd({ reason: 'done', detail: {} });
  await turn.next();
  await new Promise(setImmediate);
  assert.deepEqual(client.context.told, ['a', 'b', 'DONE']);
});

test('a failure is thrown behind the audio before it, with its code', async () => {
  const turn = say(client, 'Hi');
  client.context.listener.onAudio(SAMPLES, 0);
  client.context.listener.onEnd({ reason: 'error', detail: { code: 'overloaded', message: 'too many' } });
  assert.equal((await turn.next()).value.start, 0);
  await assert.rejects(turn.next(), (error) => error instanceof SpeechError && error.code === 'overloaded');
});

for (const [reason, code] of [
  ['lost', 'lost'],
  ['closed', 'closed'],
  ['idle', 'context_ended'],
]) {
  test(`an end that is ${reason} is a failure`, async () => {
    const turn = say(client, 'Hi');
    client.context.listener.onEnd({ reason, detail: {} });
    await assert.rejects(turn.next(), (error) => error instanceof SpeechError && error.code === code);
  });
}

test('cancel ends the iteration, drops what was not taken, and tells what was heard', async () => {
  const turn = say(client, 'Hi');
  client.context.listener.onAudio(SAMPLES, 0);
  const stopping = turn.cancel(40);
  const detail = { text_spoken: 'H', text_remaining: 'i' };
  client.context.listener.onEnd({ reason: 'cancelled', detail });
  assert.deepEqual(await stopping, { textSpoken: 'H', textRemaining: 'i' });
  assert.equal((await turn.next()).done, true);
  assert.deepEqual(client.context.told.at(-1), ['CANCEL', 40]);
});

test('a cancel after the end answers from the record', async () => {
  const turn = say(client, 'Hi');
  client.context.listener.onEnd({ reason: 'done', detail: {} });
  assert.deepEqual(await turn.cancel(7), { textSpoken: '7', textRemaining: '' });
});

test('leaving the iteration cancels', async () => {
  const turn = say(client, 'Hi');
  client.context.listener.onAudio(SAMPLES, 0);
  for await (const _ of turn) break;
  assert.deepEqual(client.context.told.at(-1), ['CANCEL', undefined]);
});

test('a text that fails cancels, and its error is thrown', async () => {
  async function* broken() {
    yield 'a';
    throw new RangeError('the model has died');
  }
  const turn = say(client, broken());
  await new Promise(setImmediate);
  client.context.listener.onEnd({ reason: 'cancelled', detail: {} });
  await assert.rejects(turn.next(), RangeError);
  assert.deepEqual(client.context.told, ['a', ['CANCEL', undefined]]);
});

test('a text that goes on after a cancel is left', async () => {
  let left = false;
  async function* endless() {
    try {
      for (;;) yield 'a';
    } finally {
      left = true;
    }
  }
  const turn = say(client, endless());
  client.context.cancel();
  client.context.listener.onEnd({ reason: 'cancelled', detail: {} });
  assert.equal((await turn.next()).done, true);
  await new Promise(setImmediate);
  assert.ok(left);
});
