// The audio thread: hands messages to a Playback and blocks to the device. `process` creates no objects.
//
// In:  {type: 'begin', serial, prebuffer, offset} · {type: 'push', serial, samples} · {type: 'end', serial} ·
//      {type: 'stop'}
// Out: {serial, state, consumed, gaps}, one object used again and again, copied by postMessage.

import { Playback, State } from './playback.js';

const REPORT_FRAMES = 1024; // about 21 ms

class SpeechProcessor extends AudioWorkletProcessor {
  constructor(options) {
    super();
    this.playback = new Playback(options.processorOptions.sourceRate, Math.round(sampleRate));
    this.report = { serial: 0, state: State.IDLE, consumed: 0, gaps: 0 };
    this.sinceReport = 0;
    this.port.onmessage = (event) => this.receive(event.data);
  }

  receive(message) {
    if (message.type === 'stop') {
      this.playback.stop();
      this.report.serial = 0;
    } else if (message.type === 'begin') {
      this.playback.begin(message.prebuffer, message.offset);
      this.report.serial = message.serial;
    } else if (message.serial === this.report.serial) {
      if (message.type === 'push') this.playback.push(message.samples);
      else this.playback.end();
    }
  }

  process(_inputs, outputs) {
    const channels = outputs[0];
    const before = this.playback.state;
    this.playback.render(channels[0]);
    for (let i = 1; i < channels.length; i++) channels[i].set(channels[0]);
    this.sinceReport += channels[0].length;
    if (this.playback.state !== before || this.sinceReport >= REPORT_FRAMES) this.tell();
    return true; // stay alive in silence: the next utterance must find the thread running
  }

  tell() {
    this.sinceReport = 0;
    if (this.report.serial === 0) return;
    const { playback, report } = this;
    report.state = playback.state;
    report.consumed = playback.consumed;
    report.gaps = playback.gaps;
    this.port.postMessage(report);
    if (report.state === State.FINISHED) {
      playback.stop(); // to IDLE
      report.serial = 0;
    }
  }
}

registerProcessor('speech', SpeechProcessor);
