import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Utterance } from '../../web/utterance.js';

const FIRST = 8192;
const CHUNK = 51200;

test('first audio counts from the character after the first clause', () => {
  const utterance = new Utterance();
  utterance.sent('Hello,', 1000);
  utterance.sent(' world', 1500);
  utterance.sent(' and', 1600);
  utterance.segment('Hello,', 0);
  utterance.audio(FIRST, 1720);
  assert.equal(utterance.firstAudioMs, 220);
});

test('first audio counts from done if nothing follows the first segment', () => {
  const utterance = new Utterance();
  utterance.sent('Hello', 1000);
  utterance.released(1400);
  utterance.segment('Hello', 0);
  utterance.audio(FIRST, 1500);
  utterance.audio(CHUNK, 1900);
  assert.equal(utterance.firstAudioMs, 100);
});

test('the real-time factor leaves out the wait for text, and gives way to the figure of the server', () => {
  const utterance = new Utterance();
  utterance.segment('One,', 0);
  utterance.audio(FIRST, 0);
  assert.equal(utterance.realTimeFactor, null);
  utterance.audio(44100, 300);
  utterance.segment(' two', FIRST + 44100);
  utterance.audio(FIRST, 9000);
  utterance.audio(44100, 9500);
  assert.equal(utterance.realTimeFactor, 0.4);
  utterance.metrics = { rtf: 0.31 };
  assert.equal(utterance.realTimeFactor, 0.31);
});

/** An utterance of one segment, 'One, ', that has been received and played, with `sent` characters sent in all. */
function played(sent) {
  const utterance = new Utterance();
  utterance.sent(sent, 0);
  utterance.segment('One, ', 0);
  utterance.audio(FIRST, 10);
  return utterance;
}

test('silence within a segment is an underrun, however the reports cross', () => {
  const before = played('One, t');
  before.gap(FIRST - 16);
  assert.equal(before.underruns, 0); // not known yet
  before.audio(CHUNK, 20);
  assert.equal(before.underruns, 1);
  const after = played('One, t');
  after.audio(CHUNK, 20); // has arrived when the worklet's report does
  after.gap(FIRST - 16);
  assert.equal(after.underruns, 1);
});

test('silence for want of text is none', () => {
  const utterance = played('One, two');
  utterance.gap(FIRST - 16);
  utterance.sent(' three, four', 500);
  utterance.segment('two three, ', FIRST);
  utterance.audio(FIRST, 700);
  assert.equal(utterance.underruns, 0);
});

test('silence although the next text was released is an underrun', () => {
  const followed = played('One, two three, four');
  followed.gap(FIRST - 16);
  followed.segment('two three, ', FIRST);
  followed.audio(FIRST, 700);
  assert.equal(followed.underruns, 1);
  const done = played('One, two three, ');
  done.released(5);
  done.gap(FIRST - 16);
  done.segment('two three, ', FIRST);
  done.audio(FIRST, 700);
  assert.equal(done.underruns, 1);
});

test('highlighting follows the audio word by word, and never runs ahead of its segment', () => {
  const utterance = new Utterance();
  const text = 'One two three. Four five.';
  utterance.sent(text, 0);
  assert.equal(utterance.heardLength(0), 0);
  utterance.segment('One two three. ', 0);
  utterance.audio(44100, 0);
  utterance.segment('Four five.', 44100);
  utterance.audio(22050, 0);
  utterance.complete = true;
  assert.equal(text.slice(0, utterance.heardLength(1000)), 'One');
  assert.equal(text.slice(0, utterance.heardLength(22050)), 'One two');
  assert.equal(text.slice(0, utterance.heardLength(44099)), 'One two three.');
  assert.equal(text.slice(0, utterance.heardLength(44100 + 11000)), 'One two three. Four');
  assert.equal(utterance.heardLength(66150), text.length);
});

test('highlighting of a segment that is still arriving goes by the pace of speech', () => {
  const utterance = new Utterance();
  const text = 'word '.repeat(30);
  utterance.sent(text, 0);
  utterance.segment(text, 0);
  utterance.audio(FIRST, 0);
  const heard = utterance.heardLength(FIRST);
  assert.ok(heard > 0 && heard < 10, String(heard)); // 0.19 s of 10 s
});
