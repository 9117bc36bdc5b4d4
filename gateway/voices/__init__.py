"""Voices that are made of recordings: decoding, encoding, keeping."""
