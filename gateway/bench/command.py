"""The `bench` command: measures a running gateway, and reports."""

from __future__ import annotations

import asyncio
import datetime
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
from tqdm import tqdm

from gateway.address import AddressError, endpoint_url
from gateway.advice import with_advice
from gateway.bench.listener import Utterance
from gateway.bench.load import Load, Pace
from gateway.bench.plot import PlotError, check_plot, plot_buffers
from gateway.bench.prompts import built_in, read_lines, repeated, texts
from gateway.bench.report import summarise, table
from gateway.keys import is_key
from gateway.options import BenchOptions
from protocol.client import SpeechError, connect

OK, FAILED, INTERRUPTED = 0, 1, 130


class BenchError(Exception):
    """Why nothing was measured, for the person at the terminal."""


def bench(options: BenchOptions) -> int:
    """Measure and report -> exit status: 0 all spoken, 1 something failed, 130 interrupted (what is known is told)."""
    try:
        run = Run(options)
        interrupted = _measure_until_interrupted(run)
        failed = run.report(interrupted)
    except (BenchError, AddressError, PlotError) as error:
        print(f"audio8-gateway bench: {error}", file=sys.stderr)
        return FAILED
    if interrupted:
        return INTERRUPTED
    return FAILED if failed else OK


def _measure_until_interrupted(run: Run) -> bool:
    """Measure -> whether it was interrupted (Ctrl-C)."""
    try:
        asyncio.run(run.measure())
    except KeyboardInterrupt:
        return True
    return False


class Run:
    """One measurement: `measure`, then `report`; what was measured stays if it is interrupted."""

    def __init__(self, options: BenchOptions) -> None:
        """See that it can be done at all.  Raises BenchError, AddressError, PlotError."""
        if options.api_key is not None and not is_key(options.api_key):
            raise BenchError("the API key has characters that no key has")
        for path in filter(None, (options.output, options.plot)):
            if not path.parent.is_dir():
                raise BenchError(f"cannot write {path}: there is no folder {path.parent}")
        if options.plot is not None:
            check_plot()
        self._options = options
        self._url = endpoint_url(options.url)
        self._pace = Pace(
            options.concurrency, options.characters_per_s if options.realtime else None, options.request_rate
        )
        self._texts = make_texts(options.prompts + options.warmups, options.words, options.text_file, options.seed)
        self._utterances: list[Utterance] = []
        self._begin = 0.0
        self._model = ""
        self._sample_rate = 0

    async def measure(self) -> None:
        """Fill the list of utterances.  Raises BenchError if the gateway takes no connection."""
        await self._look()
        warmups, measured = self._texts[: self._options.warmups], self._texts[self._options.warmups :]
        async with Load(self._dial, self._pace) as load:
            await load.speak(warmups, self._options.seed, on_end=lambda _: None)
            self._begin = time.monotonic()
            with tqdm(total=len(measured), desc="utterances", unit="", disable=None) as bar:

                def note(utterance: Utterance) -> None:
                    self._utterances.append(utterance)
                    bar.update()

                await load.speak(measured, self._options.seed, note)

    def report(self, interrupted: bool) -> bool:
        """Print the table, write the files -> whether requests failed.  Raises BenchError, PlotError."""
        spoken = [utterance for utterance in self._utterances if utterance.code is None]
        failures = {utterance.code: utterance.message for utterance in self._utterances if utterance.code}
        for code, message in failures.items():
            print(f"audio8-gateway bench: a request failed: {message} ({code})", file=sys.stderr)
        duration_s = max((utterance.ended_at for utterance in self._utterances), default=self._begin) - self._begin
        summary = summarise(self._utterances, duration_s, self._about(interrupted))
        print(table(summary))
        if self._options.output is not None:
            _write(self._options.output, orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        if self._options.plot is not None:
            plot_buffers([utterance.player for utterance in spoken], self._begin, self._options.plot)
        return bool(failures)

    def _dial(self) -> connect:
        options = self._options
        given = {"voice": options.voice, "sample_rate": options.sample_rate, "seed": options.seed}
        config = {key: value for key, value in given.items() if value is not None}
        return connect(self._url, options.api_key, response_format="pcm", **config)

    async def _look(self) -> None:
        """That there is a gateway, and which; refusals of the config are told before anything is measured."""
        try:
            async with self._dial() as client:
                self._model, self._sample_rate = client.ready.model, client.config["sample_rate"]
        except SpeechError as error:
            raise BenchError(with_advice(error)) from error

    def _about(self, interrupted: bool) -> dict[str, object]:
        """How it was measured."""
        options = self._options
        return {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "url": self._url.partition("?")[0],
            "model_id": self._model,
            "num_prompts": options.prompts,
            "max_concurrency": options.concurrency,
            "request_rate": options.request_rate,
            "realtime": options.realtime,
            "characters_per_s": self._pace.characters_per_s,
            "sample_rate": self._sample_rate,
            "voice": options.voice,
            "seed": options.seed,
            "warmups": options.warmups,
            "interrupted": interrupted,
        }


def make_texts(count: int, words: int, text_file: Path | None, seed: int) -> list[str]:
    """The texts to speak: lines of the file, or seeded ones of plain sentences.  Raises BenchError."""
    if text_file is None:
        return texts(built_in(), count, words, seed)
    try:
        lines: Sequence[str] = read_lines(text_file)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"cannot read {text_file}: {error}") from error
    if not lines:
        raise BenchError(f"{text_file} has no line with a text")
    return repeated(lines, count)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror}") from error
