import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Typist, pieces } from '../../web/typist.js';

/** A typist on a clock that the test moves, whose timers fire `late` ms after they should. */
function typistOn(late = 0) {
  const clock = { now: 0, timers: [] };
  const typist = new Typist({
    now: () => clock.now,
    later: (f, ms) => clock.timers.push({ f, at: clock.now + ms + late }),
  });
  clock.next = () => {
    const { f, at } = clock.timers.shift();
    clock.now = at;
    f();
  };
  return { clock, typist };
}

test('pieces join to the text verbatim, and are no longer than a token', () => {
  const text = 'Extraordinarily, the  harbour—“quiet”—lay still.\n\n3.14 日本語 e\u0301te\u0301 👍🏽!  ';
  assert.equal(pieces(text).join(''), text);
  assert.deepEqual(pieces('The harbour, quiet.'), ['The', ' harbou', 'r', ',', ' quiet', '.']);
  assert.deepEqual(pieces(''), []);
});

for (const late of [0, 1000]) {
  test(`keeps its speed when timers fire ${late} ms late`, () => {
    const { clock, typist } = typistOn(late);
    const text = 'one two three four '.repeat(50);
    let written = '';
    let ended = 0;
    typist.speed = 50;
    typist.start(
      text,
      (piece) => (written += piece),
      () => (ended += 1),
    );
    while (typist.busy) clock.next();
    assert.equal(written, text);
    assert.equal(ended, 1);
    assert.ok(Math.abs(clock.now / 1000 - text.length / 50) < 1.2, `${clock.now} ms`);
  });
}

test('a new speed holds from then on', () => {
  const { clock, typist } = typistOn();
  let written = '';
  typist.speed = 10;
  typist.start(
    'a '.repeat(500),
    (piece) => (written += piece),
    () => {},
  );
  while (clock.now < 1000) clock.next();
  assert.ok(Math.abs(written.length - 10) <= 2);
  typist.speed = 200;
  while (clock.now < 2000) clock.next();
  assert.ok(Math.abs(written.length - 210) <= 8);
});

test('stopped, also from within a write, it writes nothing more and does not report an end', () => {
  const { clock, typist } = typistOn(1000);
  const written = [];
  typist.start(
    'one two three',
    (piece) => {
      written.push(piece);
      typist.stop();
    },
    () => assert.fail('ended'),
  );
  while (clock.timers.length) clock.next();
  assert.deepEqual(written, ['one']);
  assert.equal(typist.busy, false);
});
