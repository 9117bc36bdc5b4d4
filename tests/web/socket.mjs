// A socket whose other end is the test, and messages as the gateway sends them.

export const READY = {
  type: 'session.ready',
  session_id: 's',
  protocol: 1,
  voices: [],
  config: {},
  limits: { contexts: 3, text_characters: 10, message_bytes: 131072 },
};

/** A socket whose other end is the test. */
export class Socket {
  static all = [];
  sent = [];

  constructor(url, protocols) {
    this.url = url;
    this.protocols = protocols;
    Socket.all.push(this);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {}

  receive(message) {
    this.onmessage({
      data: typeof message === 'string' || message instanceof ArrayBuffer ? message : JSON.stringify(message),
    });
  }

  take() {
    return this.sent.splice(0);
  }
}

/** A binary message as the gateway frames it, `values` as 16-bit samples. */
export function binary({
  number = 0,
  sequence = 0,
  first = 0,
  values = [1, 2, 3],
  magic = 'A8',
  version = 1,
  count = values.length,
}) {
  const view = new DataView(new ArrayBuffer(24 + 2 * values.length));
  view.setUint8(0, magic.charCodeAt(0));
  view.setUint8(1, magic.charCodeAt(1));
  view.setUint8(2, version);
  view.setUint8(3, sequence === 0 ? 1 : 0);
  view.setUint32(4, number, true);
  view.setUint32(8, sequence, true);
  view.setUint32(12, count, true);
  view.setBigUint64(16, BigInt(first), true);
  values.forEach((value, i) => view.setInt16(24 + 2 * i, value, true));
  return view.buffer;
}

export const start = (id, number = 0, format = 'pcm') => ({
  type: 'audio.start',
  context_id: id,
  context_number: number,
  format,
});
