// What the page knows about one utterance: what was sent when, which audio speaks which text, how well it came.
// Pure: times (ms) and positions (samples) are given to it.

const CHARACTERS_PER_SECOND = 15; // of speech, until the utterance itself has shown its pace
const LOOKAHEAD = 128; // the worklet's resampler stops this many samples short of the end, at most

export class Utterance {
  #rate;
  #sends = []; // [{at, length}]: how much text had been sent when; until the first audio
  #flushedAt;
  #releasedLength = 0; // characters that a flush or done covers
  #lastAudioAt = null;
  #openGap = null; // {position, sentLength}: silence whose cause the next audio will tell
  #pace = { wallMs: 0, samples: 0 };

  constructor(rate = 44100) {
    this.#rate = rate;
    this.text = ''; // all of it, as sent so far
    this.segments = []; // [{start, from, to}]: first sample, and the characters it speaks
    this.received = 0; // samples
    this.complete = false; // no more audio will come
    this.underruns = 0;
    this.firstAudioMs = null;
    this.metrics = {}; // of session.done
  }

  /** Text left for the server. */
  sent(text, now) {
    this.text += text;
    if (this.firstAudioMs === null) this.#sends.push({ at: now, length: this.text.length });
  }

  /** Everything sent so far was asked to be spoken (flush or done). */
  released(now) {
    this.#flushedAt ??= now;
    this.#releasedLength = this.text.length;
  }

  /** The audio from sample `start` on speaks `text`. */
  segment(text, start) {
    const from = this.segments.at(-1)?.to ?? 0;
    this.segments.push({ start, from, to: from + text.length });
    this.#lastAudioAt = null; // the wait for a segment may be for its text: it says nothing about speed
  }

  /** `count` samples arrived. */
  audio(count, now) {
    if (this.firstAudioMs === null) this.#measureFirstAudio(now);
    if (this.#lastAudioAt !== null) {
      this.#pace.wallMs += now - this.#lastAudioAt;
      this.#pace.samples += count;
    }
    this.#lastAudioAt = now;
    this.received += count;
    this.#judgeGap();
  }

  /** The player ran out of audio at `position`. */
  gap(position) {
    this.#openGap = { position, sentLength: this.text.length, releasedLength: this.#releasedLength };
    this.#judgeGap();
  }

  /** Characters whose audio the server has begun to send. */
  get spokenLength() {
    return this.segments.at(-1)?.to ?? 0;
  }

  /** Seconds of work for a second of speech: the server's figure at the end, before that from the chunks' arrival. */
  get realTimeFactor() {
    if (typeof this.metrics.rtf === 'number') return this.metrics.rtf;
    if (this.#pace.samples === 0) return null;
    return this.#pace.wallMs / 1000 / (this.#pace.samples / this.#rate);
  }

  /** How many characters have been heard when `position` samples were, to the end of the word being spoken. */
  heardLength(position) {
    if (this.complete && position >= this.received) return this.spokenLength;
    const index = this.segments.findLastIndex(({ start }) => start <= position);
    if (index < 0 || position <= 0) return 0;
    const { start, from, to } = this.segments[index];
    const share = (position - start) / Math.max(1, this.#segmentEnd(index) - start);
    const at = from + Math.floor(Math.min(1, share) * (to - from));
    const rest = this.text.slice(at, to).search(/\s/);
    return rest < 0 ? to : at + rest;
  }

  /** Where a segment's audio ends. While it is arriving that is a guess from the pace of the segments before. */
  #segmentEnd(index) {
    const next = this.segments[index + 1];
    if (next) return next.start;
    if (this.complete) return this.received;
    const { start, from, to } = this.segments[index];
    const perCharacter = from > 0 ? start / from : this.#rate / CHARACTERS_PER_SECOND;
    return Math.max(this.received, start + (to - from) * perCharacter);
  }

  /**
   * From the character after the first segment (only then is a clause known to be over), or the flush or done,
   * to its first audio.
   */
  #measureFirstAudio(now) {
    const length = this.segments[0]?.to ?? 0;
    const following = this.#sends.find((send) => send.length > length)?.at;
    const speakable = [following, this.#flushedAt].filter((at) => at !== undefined);
    // Neither: the server speaks what nothing has followed yet (it may, after a while).
    this.firstAudioMs = now - (speakable.length ? Math.min(...speakable) : (this.#sends.at(-1)?.at ?? now));
    this.#sends = [];
  }

  /**
   * Silence is an underrun if the audio that ends it was due: it goes on with the same segment, or begins one whose
   * text had been released when the silence began. Otherwise the speaker waited for the writer.
   */
  #judgeGap() {
    const gap = this.#openGap;
    if (!gap || this.received <= gap.position + LOOKAHEAD) return;
    this.#openGap = null;
    const next = this.segments.find(({ start }) => start >= gap.position && start <= gap.position + LOOKAHEAD);
    if (!next || gap.sentLength > next.to || gap.releasedLength >= next.to) this.underruns += 1;
  }
}
