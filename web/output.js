// Opens the browser's audio output with the speech worklet in it.

/**
 * An AudioContext at `sourceRate` where the browser grants that, otherwise at the device's own rate:
 * the worklet resamples.
 */
function openContext(sourceRate) {
  try {
    return new AudioContext({ sampleRate: sourceRate, latencyHint: 'interactive' });
  } catch (error) {
    if (error.name !== 'NotSupportedError') throw error;
    return new AudioContext({ latencyHint: 'interactive' });
  }
}

/** @returns {Promise<{context: AudioContext, port: MessagePort, close: () => void}>} */
export async function openOutput(sourceRate) {
  const context = openContext(sourceRate);
  await context.audioWorklet.addModule(new URL('./worklet.js', import.meta.url));
  const node = new AudioWorkletNode(context, 'speech', {
    numberOfInputs: 0,
    outputChannelCount: [1],
    processorOptions: { sourceRate },
  });
  node.connect(context.destination);
  return { context, port: node.port, close: () => context.close() };
}
