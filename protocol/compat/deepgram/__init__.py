"""Deepgram's two protocols of speech over a WebSocket: Aura and Flux."""
