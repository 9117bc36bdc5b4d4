"""The voice's tokenizer: bytes, the parts of the prompt, and the semantic ids, last and contiguous."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|voice|>", "<|speaker:0|>")
# Parts of the prompt as one token each.  All hold a line break, which no cleaned text does: a text never yields them.
PARTS = (
    "system\n",
    "user\n",
    "assistant\n",
    "\n\nSpeech:\n",
    "convert the provided text to speech reference to the following:\n\nText:\n",
)
_PLAIN = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2014": ", ", "\u2013": "-"}


def write_tokenizer(path: Path, semantic: int) -> dict[str, int]:
    """Write `tokenizer.json` with `semantic` semantic ids; returns the ids that config.json has to name."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={byte: i for i, byte in enumerate(alphabet)}, merges=[]))
    replaced = [normalizers.Replace(old, new) for old, new in _PLAIN.items()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *replaced])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    tokenizer.add_tokens([AddedToken(part, normalized=False) for part in PARTS])
    codes = [AddedToken(f"<|semantic:{i}|>", special=True, normalized=False) for i in range(semantic)]
    tokenizer.add_special_tokens(codes)
    tokenizer.save(str(path))
    first = tokenizer.token_to_id("<|semantic:0|>")
    return {
        "vocab_size": tokenizer.get_vocab_size(),
        "semantic_begin_id": first,
        "semantic_end_id": first + semantic - 1,
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "pad_token_id": tokenizer.token_to_id("<|endoftext|>"),
    }
