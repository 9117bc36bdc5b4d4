// The text field. What has been sent cannot be unsaid, so it is locked; the word being written can still be
// corrected, and is sent when it is finished. (The gateway does not speak half words either, so nothing is lost.)

const LONGEST_WORD = 40; // a longer run without a border is sent as it comes

// Scripts that put no space between words: each character is a border.
const UNSPACED = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar']
  .map((name) => `\\p{Script=${name}}`)
  .join('');
const UNFINISHED_WORD = new RegExp(`(?:(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}])+$`, 'u');

/** How much of `text` is finished words: all but a trailing run of letters and digits. */
export function finishedLength(text) {
  const word = text.match(UNFINISHED_WORD);
  return word && word[0].length <= LONGEST_WORD ? word.index : text.length;
}

export class Composer {
  #field;
  #backdrop;
  #handlers;
  #locked = ''; // the text that was handed on

  /**
   * `backdrop` lies under the field and shows its text in colours. Handlers: `onText(text)`, `onDone()`, `onFlush()`,
   * `onRefused()` when an edit of locked text was undone.
   */
  constructor(field, backdrop, handlers) {
    this.#field = field;
    this.#backdrop = backdrop;
    this.#handlers = handlers;
    field.addEventListener('beforeinput', (event) => this.#guard(event));
    field.addEventListener('input', (event) => event.isComposing || this.#take());
    field.addEventListener('compositionend', () => this.#take());
    field.addEventListener('keydown', (event) => this.#onKey(event));
    field.addEventListener('scroll', () => (backdrop.scrollTop = field.scrollTop));
  }

  get lockedLength() {
    return this.#locked.length;
  }

  get text() {
    return this.#field.value;
  }

  /** Writes at the end, as if it was typed. */
  append(text) {
    this.#field.value += text;
    this.#field.scrollTop = this.#field.scrollHeight;
    this.#take();
  }

  /** Hands on what is left, and reports the end of the utterance. */
  finish() {
    this.#hand(this.#field.value.length);
    if (this.#locked.trim()) this.#handlers.onDone();
  }

  /** Hands on the word being written too, and asks that all be spoken now. */
  flush() {
    this.#hand(this.#field.value.length);
    if (this.#locked.trim()) this.#handlers.onFlush();
  }

  /** Empties the field; an unfinished word that was not handed on stays. */
  clear() {
    this.#field.value = this.#field.value.slice(this.#locked.length);
    this.#locked = '';
  }

  /** Empties the field altogether. */
  empty() {
    this.#locked = this.#field.value = '';
  }

  set readOnly(value) {
    this.#field.readOnly = value;
  }

  /** Colours the text: the first `heard` characters were spoken. */
  paint(heard) {
    paintText(this.#backdrop, this.text, heard, this.#locked.length);
    this.#backdrop.scrollTop = this.#field.scrollTop;
  }

  #onKey(event) {
    if (event.key !== 'Enter' || event.isComposing || event.shiftKey || this.#field.readOnly) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) this.flush();
    else this.finish();
  }

  /** Keeps the caret's edits out of the locked text: what is typed there goes to the end, deletions are refused. */
  #guard(event) {
    const { selectionStart: start, selectionEnd: end, value } = this.#field;
    const deletes = event.inputType.startsWith('delete');
    const reachesBack =
      start < this.#locked.length ||
      (start === end && start === this.#locked.length && /Backward$/.test(event.inputType));
    if (deletes && reachesBack) {
      event.preventDefault();
      if (this.#locked) this.#handlers.onRefused();
    } else if (!deletes && start < this.#locked.length) {
      this.#field.setSelectionRange(value.length, value.length);
    }
  }

  #take() {
    const { value } = this.#field;
    if (!value.startsWith(this.#locked)) return this.#restore();
    this.#hand(this.#locked.length + finishedLength(value.slice(this.#locked.length)));
  }

  /** Undo, drag and drop and some keyboards get past the guard: then the locked text is put back. */
  #restore() {
    this.#field.value = this.#locked;
    this.#handlers.onRefused();
  }

  #hand(length) {
    const text = this.#field.value.slice(this.#locked.length, length);
    if (!text) return;
    // A turn begins with something to say, not with blank space.
    if (!this.#locked && !text.trim()) return;
    this.#locked += text;
    this.#handlers.onText(text);
  }
}

/** Shows `text` in `element`: heard, then on its way, then not sent. Returns whether that was a change. */
export function paintText(element, text, heard, locked) {
  const key = `${heard}|${locked}|${text}`;
  if (element.paintedKey === key) return false;
  element.paintedKey = key;
  const parts = [
    ['heard', text.slice(0, heard)],
    ['sent', text.slice(heard, locked)],
    ['unsent', text.slice(locked)],
  ];
  element.replaceChildren(
    ...parts
      .filter(([, part]) => part)
      .map(([name, part]) => {
        const span = document.createElement('span');
        span.className = name;
        span.textContent = part;
        return span;
      }),
  );
  return true;
}
