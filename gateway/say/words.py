"""The text of the `say` command as a stream of words, from an argument or from standard input while it comes in."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator

_WORD = re.compile(r"\s*\S{1,256}\s*|\s+")
_READ_BYTES = 4096
_CHUNKS_AHEAD = 8


def split_words(text: str) -> Iterator[str]:
    """`text` in pieces of one word with the white space around it; joined they are the text."""
    return (found[0] for found in _WORD.finditer(text))


async def words(text: str | None) -> AsyncIterator[str]:
    """The words of `text`, or of standard input if it is None."""
    if text is not None:
        for word in split_words(text):
            yield word
        return
    async for chunk in _chunks_of(sys.stdin.fileno()):
        for word in split_words(chunk):
            yield word


async def _chunks_of(descriptor: int) -> AsyncIterator[str]:
    """What can be read from a descriptor, as soon as it can be read; bytes that are no UTF-8 become U+FFFD.

    A thread reads, since an event loop cannot wait for a plain file; it ends with the process if nothing more comes.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[str | None] = asyncio.Queue(_CHUNKS_AHEAD)

    def read() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        ended = False
        while not ended:
            data = os.read(descriptor, _READ_BYTES)
            ended = not data
            if text := decoder.decode(data, final=ended):
                asyncio.run_coroutine_threadsafe(chunks.put(text), loop).result()
        asyncio.run_coroutine_threadsafe(chunks.put(None), loop).result()

    threading.Thread(target=read, name="read-text", daemon=True).start()
    while (chunk := await chunks.get()) is not None:
        yield chunk
