"""ElevenLabs' text to speech over a WebSocket: `stream-input`, and `multi-stream-input` with several contexts."""
