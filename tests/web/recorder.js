// Runs in the page before its own scripts: records what goes to the loudspeaker, and plays the part of awkward
// browsers and servers. `window.testOptions` is set before it: {rate, frozenFrames, lateAudio}.
{
  const { rate, frozenFrames, lateAudio } = window.testOptions;
  const recording = { rate: 0, blocks: [], frames: 0 };
  window.recording = recording;

  // A device that runs at `rate` only and refuses every other.
  const RealContext = window.AudioContext;
  window.AudioContext = class extends RealContext {
    constructor(options = {}) {
      if (options.sampleRate && options.sampleRate !== rate) throw new DOMException('refused', 'NotSupportedError');
      super({ ...options, sampleRate: rate });
      recording.rate = this.sampleRate;
      recording.context = this;
    }
  };

  const processor = `registerProcessor('recorder', class extends AudioWorkletProcessor {
    batch = [];
    process([[samples]]) {
      this.batch.push(...(samples ?? new Float32Array(128)));
      if (this.batch.length >= 1024) { this.port.postMessage(Float32Array.from(this.batch)); this.batch = []; }
      return true;
    }
  });`;
  const recorderUrl = URL.createObjectURL(new Blob([processor], { type: 'text/javascript' }));
  const realAddModule = AudioWorklet.prototype.addModule;
  AudioWorklet.prototype.addModule = async function (url) {
    await realAddModule.call(this, recorderUrl);
    return realAddModule.call(this, url);
  };

  const realConnect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const recorder = new AudioWorkletNode(this.context, 'recorder', { numberOfOutputs: 0 });
      recorder.port.onmessage = ({ data }) => {
        recording.blocks.push(data);
        recording.frames += data.length;
      };
      realConnect.call(this, recorder);
    }
    return realConnect.call(this, target, ...rest);
  };

  // When the stop key is pressed, on the clock of the recording.
  window.addEventListener(
    'keydown',
    ({ key }) => {
      if (key === 'Escape') recording.stoppedAt = recording.frames;
    },
    { capture: true },
  );

  // A tab that is not seen: no frames, and timers about once a second.
  if (frozenFrames) {
    window.requestAnimationFrame = () => 0;
    const realTimeout = window.setTimeout;
    window.setTimeout = (f, ms = 0, ...rest) => realTimeout(f, Math.max(ms, 1000), ...rest);
  }

  // A server that goes on sending audio of a cancelled context, at once and after its answer.
  if (lateAudio) {
    const realSend = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) {
      realSend.call(this, text);
      this.last ??=
        this.addEventListener('message', ({ data }) => {
          if (typeof data !== 'string') this.lastAudio = data;
        }) ?? true;
      if (JSON.parse(text).type !== 'input.cancel') return;
      const again = () => {
        for (let i = 1; i <= 5; i++) {
          const late = this.lastAudio.slice(0);
          const view = new DataView(late);
          view.setUint32(8, view.getUint32(8, true) + i, true);
          this.onmessage({ data: late });
          window.lateMessages = (window.lateMessages ?? 0) + 1;
        }
      };
      again();
      setTimeout(again, 150);
    };
  }
}
