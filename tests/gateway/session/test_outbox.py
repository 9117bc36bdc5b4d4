"""Who may make more audio, and when the listener has heard all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.session.outbox import Outbox, Playback
from gateway.session.utterance import AudioPiece, FlushPoint, Speech, Tally


def _piece(seconds: float) -> AudioPiece:
    return AudioPiece(Speech("", ""), Tally(44100), b"", 0, seconds)


class Box:
    """An outbox of 30 s whose credits are kept."""

    def __init__(self, contexts: int) -> None:
        self.wakes = 0
        self.outbox = Outbox(30, self._wake)
        self.granted = dict.fromkeys(range(contexts), True)
        for number in range(contexts):
            self.outbox.open(number, lambda granted, number=number: self.granted.update({number: granted}))

    def _wake(self) -> None:
        self.wakes += 1


def test_items_come_in_order_and_wake_the_writer():
    box = Box(2)
    items = [_piece(1), FlushPoint(), _piece(2)]
    for item in items:
        box.outbox.put(0, item)
    assert box.wakes == 3 and box.outbox.take(1) is None
    assert [box.outbox.take(0) for _ in range(4)] == [*items, None]
    assert box.outbox.seconds == 0


def test_synthesis_pauses_at_the_budget_and_goes_on_below_half():
    box = Box(1)
    for _ in range(29):
        box.outbox.put(0, _piece(1))
    assert box.granted[0]
    box.outbox.put(0, _piece(1))
    assert not box.granted[0]
    for _ in range(15):
        box.outbox.take(0)
    assert not box.granted[0]
    box.outbox.take(0)
    assert box.granted[0]


def test_later_contexts_share_half_and_the_front_keeps_the_other():
    box = Box(3)
    box.outbox.put(1, _piece(8))
    box.outbox.put(2, _piece(8))
    assert box.granted == {0: True, 1: False, 2: False}
    box.outbox.put(0, _piece(14))
    assert box.granted[0]
    box.outbox.put(0, _piece(2))
    assert not box.granted[0]


def test_when_the_front_ends_the_next_one_gets_its_share():
    box = Box(2)
    box.outbox.put(1, _piece(16))
    assert not box.granted[1]
    box.outbox.close(0)
    assert not box.granted[1], "it goes on below half of what it may hold"
    box.outbox.take(1)
    assert box.granted[1]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["put", "take"]), st.floats(0.1, 3)), max_size=80))
def test_the_context_in_front_can_always_go_on(steps):
    """With credit respected no more than the budget and a piece of each waits, and the front is never stuck."""
    box = Box(4)
    for number, what, seconds in steps:
        if what == "take":
            box.outbox.take(0)
        elif box.granted[number]:
            box.outbox.put(number, _piece(seconds))
        assert box.outbox.seconds < 30 + 4 * 3
    while box.outbox.take(0):
        pass
    assert box.granted[0]


def test_a_listener_is_dry_after_what_was_sent_and_what_waits():
    playback = Playback()
    assert playback.dry_at(0, now=100) is None
    assert playback.dry_at(2, now=100) == 102
    playback.sent(1.5, now=100)
    assert playback.dry_at(0, now=101) == 101.5
    assert playback.dry_at(1, now=101) == 102.5
    assert playback.dry_at(0, now=101.5) is None
    playback.sent(1, now=110)
    assert playback.dry_at(0, now=110) == pytest.approx(111)


@pytest.mark.parametrize(("released_at", "now", "dry_s"), [(0.0, 10.5, 0.0), (0.0, 11.25, 0.25), (12.0, 12.25, 0.25)])
def test_a_listener_is_dry_from_when_it_has_heard_all_and_there_was_text(released_at, now, dry_s):
    playback = Playback()
    playback.sent(1.0, now=10.0)
    assert playback.dry_for(released_at, now) == pytest.approx(dry_s)
