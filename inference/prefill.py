"""From a request to a sequence in a slot: its prompt, and the voices' prefixes that are kept."""

from __future__ import annotations

from inference.checkpoint import Checkpoint, Voice
from inference.kv import PrefixKV
from inference.messages import Reference, Submit
from inference.prefixes import PrefixCache
from inference.prompt import Prompt, PromptBuilder
from inference.runner import ARRunner
from inference.sequence import Sequence


class Prefiller:
    """Knows the voices of a checkpoint and fills slots of the runner."""

    def __init__(self, checkpoint: Checkpoint, runner: ARRunner, kept_positions: int) -> None:
        """`kept_positions`: of references that requests bring, whose prefixes are kept for the next ones."""
        self._runner = runner
        self._prompts: PromptBuilder = checkpoint.prompt_builder()
        self._voices: dict[str, Voice] = checkpoint.voices()
        self._kept: dict[str, PrefixKV] = {}  # by the names of voices
        self._references = PrefixCache(kept_positions)

    def keep_prefixes(self, slot: int) -> None:
        """Compute the prompt prefix of each voice, in a slot that nobody uses, and keep it."""
        for name, voice in self._voices.items():
            columns = self._prompts.prefix(voice.reference)
            self._runner.prefill(slot, columns, 0)
            self._kept[name] = self._runner.kv.snapshot(slot, columns.shape[1])

    def keep(self, slot: int, reference: Reference) -> None:
        """Compute a reference's prefix, in a slot that nobody uses, if it is not kept yet and there is room for it."""
        columns = self._prompts.prefix(reference)
        if reference not in self._references and self._references.has_room(columns.shape[1]):
            self._runner.prefill(slot, columns, 0)
            self._keep(slot, reference, columns.shape[1])

    def prompt(self, request: Submit) -> Prompt:
        """Raises ValueError for a text or a reference that the model cannot take, or that leaves no room to speak."""
        prompt = self._prompts.build(request.text, self._reference(request))
        self._runner.check_length(prompt.packed)
        return prompt

    def columns(self, request: Submit, prompt: Prompt) -> int:
        """How many `sequence` has to compute."""
        kept = request.voice in self._kept or (request.reference is not None and request.reference in self._references)
        return prompt.packed.shape[1] - (prompt.prefix if kept else 0)

    def sequence(self, slot: int, request: Submit, prompt: Prompt) -> Sequence:
        """Prefill into a free slot."""
        kept = self._prefix(request)
        if kept is not None:
            self._runner.kv.restore(slot, kept)
        else:
            self._runner.prefill(slot, prompt.packed[:, : prompt.prefix], 0)
            self._keep(slot, request.reference, prompt.prefix)
        return self._runner.sequence(slot, prompt.packed, prompt.prefix, request.sampling, request.segment_index)

    def _prefix(self, request: Submit) -> PrefixKV | None:
        """What is kept of the request's voice."""
        if request.reference is not None:
            return self._references.get(request.reference)
        return self._kept.get(request.voice) if request.voice is not None else None

    def _keep(self, slot: int, reference: Reference | None, positions: int) -> None:
        """The slot begins with the prefix of a reference that is likely to come again."""
        if reference is not None and self._references.takes(positions):
            self._references.put(reference, self._runner.kv.snapshot(slot, positions))

    def _reference(self, request: Submit) -> Reference | None:
        return request.reference if request.voice is None else self._voices[request.voice].reference
