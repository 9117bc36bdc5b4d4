"""An encoder of PyAV that is fed pieces of any length, and whose look-ahead is known to the sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gateway.audio.samples import to_int16


@dataclass(frozen=True, slots=True)
class Codec:
    """`name` and `options` as FFmpeg has them; `sample_format`: its name of float, packed or planar, or of 16 bits."""

    name: str
    sample_format: str
    bit_rate: int | None
    options: Mapping[str, str] = field(default_factory=dict)


class FrameCoder:
    """One channel of float samples -> packets.  Not for two threads at once.

    A decoder of the packets gives `delay` samples first that mean nothing, then the samples.
    """

    def __init__(self, codec: Codec, rate: int) -> None:
        import av  # late: it takes 18 MB and a tenth of a second, and most gateways never need it

        self._new_frame = av.AudioFrame.from_ndarray
        self._context = av.CodecContext.create(codec.name, "w")
        self._context.sample_rate, self._context.layout = rate, "mono"
        self._context.format = codec.sample_format
        if codec.bit_rate is not None:
            self._context.bit_rate = codec.bit_rate
        self._context.options = dict(codec.options)
        self._context.thread_count = 1
        self._context.open()
        self.frame_samples: int = self._context.frame_size
        self.head: bytes = self._context.extradata or b""  # the codec's header: OpusHead, STREAMINFO
        self.delay = 0  # known with the first packet
        self.given = 0  # samples, silence of `pad` included
        self._sound_end = 0  # position behind the last one that is not such silence
        self._packets = 0
        self._rest = np.empty(0, np.float32)  # less than a frame

    @property
    def decodable(self) -> int:
        """How many of the samples a decoder has, once it has all packets so far."""
        return max(0, self._packets * self.frame_samples - self.delay)

    def encode(self, samples: np.ndarray) -> list[bytes]:
        """float32 [n] -> the packets that are complete with them."""
        packets = self._encode(samples)
        self._sound_end = self.given
        return packets

    def pad(self) -> list[bytes]:
        """Silence, as little as it takes until a decoder has all samples that were given before."""
        packets = []
        while self.decodable < self._sound_end:
            packets += self._encode(np.zeros(self.frame_samples - len(self._rest), np.float32))
        return packets

    def finish(self) -> list[bytes]:
        """All that is left.  Nothing can be encoded any more."""
        packets = self._send(self._rest, self.given - len(self._rest)) if len(self._rest) else []
        return packets + self._receive(None)

    def _encode(self, samples: np.ndarray) -> list[bytes]:
        waiting = np.concatenate([self._rest, samples], dtype=np.float32)
        position = self.given - len(self._rest)
        whole = len(waiting) - len(waiting) % self.frame_samples
        self.given += len(samples)
        self._rest = waiting[whole:]
        frames = waiting[:whole].reshape(-1, self.frame_samples)
        return [
            packet
            for number, frame in enumerate(frames)
            for packet in self._send(frame, position + number * self.frame_samples)
        ]

    def _send(self, samples: np.ndarray, position: int) -> list[bytes]:
        name = self._context.format.name
        values = to_int16(samples) if name == "s16" else samples
        frame = self._new_frame(values[None], format=name, layout="mono")
        frame.sample_rate, frame.pts = self._context.sample_rate, position
        return self._receive(frame)

    def _receive(self, frame: object) -> list[bytes]:
        # Not the public `encode`: it cuts frames with a filter graph, which has as many threads as the machine has
        # cores and takes longer to open than the encoder.  Our frames have the right length.
        packets = list(self._context._send_frame_and_recv(frame))
        if packets and not self._packets:
            self.delay = -packets[0].pts
        self._packets += len(packets)
        return [bytes(packet) for packet in packets]
