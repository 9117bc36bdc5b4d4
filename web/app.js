// Wires the page together.

import { SpeechClient } from './client.js';
import { Composer } from './composer.js';
import { NewVoice } from './new_voice.js';
import { Player } from './player.js';
import { Settings } from './settings.js';
import { Speaker } from './speaker.js';
import { Typist } from './typist.js';
import { View } from './view.js';
import { Waveform } from './waveform.js';

const SAMPLE_RATE = 44100; // the codec's own: nothing is resampled before the worklet
const byId = (id) => document.getElementById(id);

const view = new View(document);
const settings = new Settings(byId('settings'));
const player = new Player({ sourceRate: SAMPLE_RATE });
const waveform = new Waveform(byId('wave'), SAMPLE_RATE);
const typist = new Typist();

const key = /^#(?:.*&)?key=([^&]+)/.exec(location.hash)?.[1]; // the part of an address that no server is told
const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
const url = `${scheme}://${location.host}/v1/stream`;
const handlers = {
  onStatus: (status) => {
    view.connection(status);
    if (status.state === 'waiting') askForKey();
  },
  onReady: (ready) => {
    speaker.prebufferMs = ready.prebuffer_ms ?? 0;
    settings.fill(ready);
    view.model(ready);
    view.notice('');
  },
  onRefused: ({ message }) => view.notice(message, 'bad'),
  onFault: (text) => console.warn(`gateway: ${text}`),
};
const client = new SpeechClient(url, handlers, { key });
const speaker = new Speaker(client, player);

/** Tells that a key is missing or wrong: a browser does not say why a WebSocket was refused, but a request is told. */
async function askForKey() {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const answer = await fetch('/v1/stream', { headers }).catch(() => null);
  if (answer?.status !== 401) return;
  const problem = key ? 'The API key in the address of this page is not valid.' : 'This gateway wants an API key.';
  view.notice(`${problem} Add one to the address: #key=…, and load the page again.`, 'bad');
}

let turn = null; // the one that is being written
let shown = null; // the latest one, whose figures are shown
let underruns = 0; // of the turns before it

const composer = new Composer(byId('text'), byId('backdrop'), {
  onText: (text) => {
    turn ??= begin();
    view.clearAdvice();
    speaker.write(turn, text);
  },
  onFlush: () => turn && speaker.flush(turn),
  onDone: () => {
    if (!turn) return;
    const finished = turn;
    turn = null;
    composer.clear();
    speaker.done(finished);
  },
  onRefused: () => view.notice('What has been spoken cannot be unsaid. Go on writing, or stop to start afresh.'),
});

function begin() {
  const { problem } = settings;
  if (!problem) client.configure(settings.read());
  view.notice(problem ? `${problem} The settings from before are used.` : '', problem ? 'bad' : 'info');
  underruns += shown?.record.underruns ?? 0;
  shown = speaker.open();
  return shown;
}

function stop() {
  const wasTyping = endTyping();
  speaker.stop();
  waveform.cut(player.played);
  if (wasTyping) composer.empty(); // the half word in the field is not the user's
}

/** Stops the typist; returns whether it was at work. */
function endTyping() {
  const wasTyping = typist.busy;
  typist.stop();
  composer.readOnly = false;
  view.typing(false);
  return wasTyping;
}

function toggleTyping() {
  if (typist.busy) return stop();
  stop(); // one voice at a time: the text that is typed starts its own turn
  const text = byId('script').value.trim();
  if (!text) return byId('script').focus();
  composer.empty();
  composer.readOnly = true;
  view.typing(true);
  typist.start(
    text,
    (piece) => composer.append(piece),
    () => {
      endTyping();
      composer.finish();
    },
  );
}

function showSpeed() {
  typist.speed = Number(byId('speed').value);
  byId('speed-value').value = `${typist.speed} characters/s`;
}

speaker.addEventListener('audio', ({ detail }) => waveform.push(detail.samples));
speaker.addEventListener('turn', ({ detail }) => {
  const changed = detail.turn;
  if (changed === turn && changed.state !== 'open') {
    // Stopped, or ended by the server, while it was being written: its text goes to the list, an unsent word stays.
    turn = null;
    if (endTyping()) composer.empty();
    else composer.clear();
  }
  if (changed !== turn && changed.state !== 'open') view.turn(changed);
  view.busy(speaker.busy);
});
player.addEventListener('status', ({ detail }) => view.audio(detail));

// Any tap or key may be the one that lets the page make sound; later ones revive an output that the system stopped.
for (const type of ['pointerdown', 'keydown'])
  document.addEventListener(type, () => player.unlock(), { capture: true });
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  stop();
  byId('text').focus();
});
document.addEventListener('visibilitychange', () => document.hidden || player.revive());
window.addEventListener('online', () => client.connect());
new NewVoice(byId('new-voice'), { key, onAdded: (voice) => settings.add(voice), onRecord: stop });
byId('stop').addEventListener('click', () => {
  stop();
  byId('text').focus();
});
byId('speak').addEventListener('click', () => composer.finish());
byId('auto').addEventListener('click', toggleTyping);
byId('speed').addEventListener('input', showSpeed);
byId('reconnect').addEventListener('click', () => client.connect());

// Only what is seen is drawn by frames; the sound does not depend on them.
function draw() {
  speaker.refreshPositions();
  composer.paint(turn?.heardLength ?? 0);
  view.progress();
  waveform.draw(player.played);
  view.figures({
    firstAudioMs: shown?.record.firstAudioMs ?? null,
    bufferedMs: player.bufferedMs,
    underruns: underruns + (shown?.record.underruns ?? 0),
    realTimeFactor: shown?.record.realTimeFactor ?? null,
  });
  requestAnimationFrame(draw);
}

showSpeed();
client.connect();
draw();
