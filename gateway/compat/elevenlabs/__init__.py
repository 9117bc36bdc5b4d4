"""ElevenLabs' text to speech and voices."""
