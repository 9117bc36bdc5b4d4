// Binary messages with `framing: "header"`: 24 bytes, little-endian, then the samples.

const HEADER_BYTES = 24;
const VERSION = 1;

/** How many bytes a sample takes, and how to read them as -1 … 1, by `audio.start`'s format. */
const FORMATS = {
  pcm: {
    bytes: 2,
    read: (buffer, at, count) => Float32Array.from(new Int16Array(buffer, at, count), (x) => x / 32768),
  },
  f32: { bytes: 4, read: (buffer, at, count) => new Float32Array(buffer.slice(at, at + 4 * count)) },
};

export const isFormat = (name) => Object.hasOwn(FORMATS, name);

/**
 * @param {ArrayBuffer} buffer
 * @returns {{first: boolean, contextNumber: number, sequence: number, count: number, firstSample: number}}
 * Throws an Error that names what is wrong.
 */
export function parseHeader(buffer) {
  if (buffer.byteLength < HEADER_BYTES) throw new Error(`binary message of ${buffer.byteLength} bytes has no header`);
  const view = new DataView(buffer);
  const magic = String.fromCharCode(view.getUint8(0), view.getUint8(1));
  if (magic !== 'A8') throw new Error(`binary message starts with ${JSON.stringify(magic)}, not "A8"`);
  if (view.getUint8(2) !== VERSION) throw new Error(`header version ${view.getUint8(2)}, not ${VERSION}`);
  return {
    first: (view.getUint8(3) & 1) === 1,
    contextNumber: view.getUint32(4, true),
    sequence: view.getUint32(8, true),
    count: view.getUint32(12, true),
    firstSample: Number(view.getBigUint64(16, true)),
  };
}

/** The samples after the header as floats. Throws an Error if the bytes are not `count` whole samples. */
export function readSamples(buffer, format, count) {
  const { bytes, read } = FORMATS[format];
  const expected = HEADER_BYTES + bytes * count;
  if (buffer.byteLength !== expected)
    throw new Error(`message has ${buffer.byteLength} bytes, its header says ${expected}`);
  return read(buffer, HEADER_BYTES, count); // 24 is a multiple of the sample size, so the view is aligned
}
