"""vLLM-Omni's text to speech over a WebSocket, `/v1/audio/speech/stream`."""
