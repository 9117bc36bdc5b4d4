"""Deepgram's speech APIs."""
