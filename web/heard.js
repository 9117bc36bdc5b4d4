// What a listener knows of a context: its text, cut where the listener is. As the server cuts it (protocol/SPEC.md).

const SECONDS_PER_CHARACTER = 0.07; // of a segment whose length is not known yet: about 14 characters a second
// Scripts that are written without spaces: each character may begin a word.
const WORD_START =
  /(?<!\S)\S|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/g;

/**
 * @param {string} text all that was said
 * @param {{text: string, start: number}[]} segments announced so far, `start`: first sample
 * @param {{samples: number, rate: number, complete: boolean}} received `complete`: the last segment has all its samples
 * @param {number} [offsetMs] how much was heard; all that came, if left out
 * @returns {{textSpoken: string, textRemaining: string}} together they are `text`
 */
export function splitHeard(text, segments, { samples, rate, complete }, offsetMs = Infinity) {
  const heard = Math.min(samples, Math.floor((offsetMs * rate) / 1000));
  let spoken = 0;
  for (const [index, segment] of segments.entries()) {
    const last = index === segments.length - 1;
    const came = (last ? samples : segments[index + 1].start) - segment.start;
    const guess = Math.ceil(segment.text.length * SECONDS_PER_CHARACTER * rate);
    const cut = heardOf(segment.text, heard - segment.start, last && !complete ? Math.max(came, guess) : came);
    spoken += cut;
    if (cut < segment.text.length) break;
  }
  return { textSpoken: text.slice(0, spoken), textRemaining: text.slice(spoken) };
}

/** Characters of a segment of `total` samples that `samples` of it speak; less than all end where a word begins. */
function heardOf(text, samples, total) {
  if (samples < 0) return 0;
  if (samples >= total) return text.length;
  const position = Math.floor((text.length * samples) / total);
  let start = 0;
  for (const { index } of text.matchAll(WORD_START)) if (index <= position) start = index;
  return start;
}
