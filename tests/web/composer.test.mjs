import assert from 'node:assert/strict';
import { test } from 'node:test';
import { finishedLength } from '../../web/composer.js';

const finished = (text) => text.slice(0, finishedLength(text));

test('the word being written is held back', () => {
  assert.equal(finished('Hello wor'), 'Hello ');
  assert.equal(finished('Hel'), '');
  assert.equal(finished('Hello '), 'Hello ');
  assert.equal(finished('Hello,'), 'Hello,');
  assert.equal(finished('cafe\u0301'), '');
});

test('scripts without spaces have no words to wait for', () => {
  for (const text of ['今日は', 'สวัสดี', 'ひらがな', 'カタカナ']) assert.equal(finished(text), text);
  assert.equal(finished('今日はab'), '今日は');
});

test('a run that has no border is sent as it comes', () => {
  assert.equal(finished('a'.repeat(40)), '');
  assert.equal(finished('a'.repeat(41)), 'a'.repeat(41));
});
