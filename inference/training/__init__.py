"""The recipe of the embedded voice: texts, teacher, codes, vocoder, language model, encoder, checkpoint.

Everything is learned from speech that a small teacher (PyPI `hibari-tts`, Apache-2.0) synthesises while training runs.
`plan.py` runs the whole recipe on one GPU; README.md beside this file tells the steps and their sizes.
"""
