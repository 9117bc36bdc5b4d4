"""What is kept of the references that requests bring: the latest ones used, within a bound."""

from __future__ import annotations

from collections import OrderedDict

from inference.kv import PrefixKV
from inference.messages import Reference


class PrefixCache:
    """From a reference's content to the keys and values of its prompt's prefix; the least recently used one goes."""

    def __init__(self, most_positions: int) -> None:
        """`most_positions` of all that is kept; 0: nothing is."""
        self._most, self._held = most_positions, 0
        self._kept: OrderedDict[tuple[str, bytes], PrefixKV] = OrderedDict()

    def __contains__(self, reference: Reference) -> bool:
        return _key(reference) in self._kept

    def get(self, reference: Reference) -> PrefixKV | None:
        """None if it is not kept; else it is the latest one."""
        kept = self._kept.get(_key(reference))
        if kept is not None:
            self._kept.move_to_end(_key(reference))
        return kept

    def takes(self, positions: int) -> bool:
        """Whether a prefix of so many can be kept at all."""
        return positions <= self._most

    def has_room(self, positions: int) -> bool:
        """Whether a prefix of so many can be kept and no other one has to go."""
        return self._held + positions <= self._most

    def put(self, reference: Reference, prefix: PrefixKV) -> None:
        """Keep one that `takes` and is not kept yet."""
        self._kept[_key(reference)] = prefix
        self._held += prefix.positions
        while self._held > self._most:
            _, oldest = self._kept.popitem(last=False)
            self._held -= oldest.positions


def _key(reference: Reference) -> tuple[str, bytes]:
    return reference.text, reference.codes.tobytes()
