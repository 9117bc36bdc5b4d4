// The microphone, for as long as a voice's recording may be.

const FORMATS = ['audio/webm;codecs=opus', 'audio/ogg;codecs=opus']; // what browsers make and the gateway takes
const LONGEST_MS = 29_000; // the gateway takes 30 s, and a recorder does not stop to the millisecond

export class Recorder {
  #recorder = null;

  /** Whether this browser can record here: it gives the microphone only to https and to this machine. */
  get possible() {
    return Boolean(navigator.mediaDevices?.getUserMedia && this.#format);
  }

  get busy() {
    return this.#recorder !== null;
  }

  get #format() {
    return globalThis.MediaRecorder && FORMATS.find((format) => MediaRecorder.isTypeSupported(format));
  }

  /** Records until `stop`, or as long as may be; resolves to a Blob. Rejects if there is no microphone, or no leave. */
  async record() {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const recorder = new MediaRecorder(stream, { mimeType: this.#format });
    this.#recorder = recorder;
    const timer = setTimeout(() => this.stop(), LONGEST_MS);
    try {
      return await new Promise((resolve, reject) => {
        recorder.ondataavailable = ({ data }) => resolve(data); // once, at the end: no time slice is asked for
        recorder.onerror = ({ error }) => reject(error);
        recorder.start();
      });
    } finally {
      clearTimeout(timer);
      this.#recorder = null;
      for (const track of stream.getTracks()) track.stop();
    }
  }

  stop() {
    if (this.#recorder?.state === 'recording') this.#recorder.stop();
  }
}
