"""Any sequence of messages, in any state of the audio: the promises of the wire hold."""

from __future__ import annotations

import json
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_session import Peer, Speaker

from protocol.limits import Limits

IDS = st.sampled_from([None, "a", "b", "c"])
PIECES = st.sampled_from(["", "word ", "two words. ", "\\ud83d", "\\ude00", " "])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.none(), max_size=2)
)


def _message(kind: str, **fields: object) -> str:
    return json.dumps({"type": kind} | {key: value for key, value in fields.items() if value is not None})


CLIENT = st.one_of(
    st.builds(lambda name, text: _message("input.text", context_id=name, text="@").replace("@", text), IDS, PIECES),
    st.builds(lambda name: _message("input.text", context_id=name, text="Hi.", voice="nobody"), IDS),
    st.builds(lambda name: _message("input.flush", context_id=name, flush_id="f"), IDS),
    st.builds(lambda name: _message("input.done", context_id=name), IDS),
    st.builds(lambda name: _message("input.cancel", context_id=name), IDS),
    st.builds(lambda name: _message("session.ping", context_id=name, id="p"), IDS),
    st.builds(lambda rate: _message("session.config", sample_rate=rate), st.sampled_from([8000, 44100, 5])),
    st.builds(
        lambda key, value: json.dumps({"type": "input.text", "text": "x", key: value}), st.text(max_size=8), VALUES
    ),
    st.text(max_size=10),
)
RARE = st.sampled_from([_message("session.close"), b"\xff", "binary", "shutdown"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), CLIENT),
        st.tuples(st.just("speak"), st.integers(1, 3)),
        st.tuples(st.just("fail"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 5.0, 200.0])),
    ),
    min_size=20,
    max_size=60,
)


def _play(steps: list, last: object, winds_down_at: int | None) -> list[dict | bytes]:
    peer = Peer(Limits(contexts=3, text_characters=40, pending_flushes=3, remembered_ids=4, idle_s=300))
    speaker, said = Speaker(peer), [peer.ready]
    for index, (kind, value) in enumerate([*steps, ("client", last)]):
        if index == winds_down_at:
            peer.session.wind_down("bye")
        match kind, value:
            case "client", "shutdown":
                speaker.act(peer.session.shut_down("bye"))
            case "client", "binary":
                speaker.act(peer.session.receive_binary(peer.now))
            case "client", bytes():
                speaker.act(peer.session.receive_text(value, peer.now))
            case "client", _:
                speaker.act(peer.raw(value))
            case "speak", _:
                for _ in range(value):
                    speaker.step()
            case "fail", _ if value in speaker.work:
                speaker.fail(value)
            case "wait", _:
                peer.now += value
                speaker.act(peer.session.tick(peer.now))
        said += peer.sent()
    assert set(speaker.work) == set(peer.session.open_contexts) == set(), "the last message ends all"
    assert peer.session.closing is not None
    return said


def _is_terminal(message: dict) -> bool:
    return message["type"] in ("session.done", "input.cancelled") or (
        message["type"] == "error" and "context_id" in message
    )


@settings(max_examples=300, deadline=None)
@given(STEPS, RARE, st.one_of(st.none(), st.integers(0, 60)))
def test_the_promises_hold_for_any_sequence(steps, last, winds_down_at):
    said = _play(steps, last, winds_down_at)
    assert sum(isinstance(message, dict) and message.get("fatal", False) for message in said) <= 1
    by_context: dict[str, list] = defaultdict(list)
    speaking = None
    for message in said:
        if isinstance(message, bytes):
            assert speaking is not None and message, "audio outside a context, or an empty message"
            by_context[speaking].append(message)
            continue
        name = message.get("context_id")
        if message["type"] == "audio.start":
            assert speaking is None, "contexts interleave"
            speaking = name
        if message["type"] in ("audio.done", "input.cancelled") and name == speaking:
            speaking = None
        if name is not None and not (message["type"] == "input.flushed" and not by_context[name]):
            by_context[name].append(message)
    for messages in by_context.values():
        if messages:
            _check_context(messages)


def _check_context(messages: list) -> None:
    """One terminal, and it is the last; positions and counts add up; text is accounted for."""
    texts = [message for message in messages if isinstance(message, dict)]
    assert (
        [_is_terminal(message) for message in texts].count(True) == 1
        and messages[-1] is texts[-1]
        and _is_terminal(texts[-1])
    )
    bytes_sent, samples = sum(len(message) for message in messages if isinstance(message, bytes)), 0
    for message in messages:
        if isinstance(message, bytes):
            samples += len(message) // 2
        elif message["type"] == "audio.segment":
            assert message["start_sample"] == samples
        elif message["type"] == "input.flushed":
            assert message["end_sample"] == samples
        elif message["type"] == "audio.done":
            assert (message["samples"], message["total_bytes"]) == (samples, bytes_sent)
        elif message["type"] == "input.cancelled":
            assert message["samples_sent"] == samples
    spoken = "".join(message["text"] for message in texts if message["type"] == "audio.segment")
    if texts[-1]["type"] == "input.cancelled":
        assert (texts[-1]["text_spoken"] + texts[-1]["text_remaining"]).startswith(spoken)
