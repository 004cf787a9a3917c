"""Netlink for tests: what a real kernel answered once, and messages made up."""

from collections.abc import Mapping, Sequence

from flapd.sources.netlink_codec import Message, encode_attribute, messages, u32
from flapd.sources.netlink_socket import answer_in
from tests.trees import CAPTURES

CAPTURE = "rdma-netlink-rxe.txt"


def captured(name: str) -> list[bytes]:
    """Datagrams of one answer."""
    lines = (line.split() for line in (CAPTURES / CAPTURE).read_text().splitlines())
    return [bytes.fromhex(line[1]) for line in lines if line[0] == name]


def captured_payload(name: str) -> bytes:
    (datagram,) = captured(name)
    (message,) = messages(datagram)
    return message.payload


class RecordedKernel:
    """Answers a kind of request, asked for one or for all, as was recorded."""

    def __init__(self, answers: Mapping[tuple[int, bool], Sequence[bytes]]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[int, bytes]] = []
        self.refuses: tuple[int, bytes] | None = None
        """A kind of request, and what stands in those that are refused."""
        self.closed = False

    def ask(self, kind: int, payload: bytes = b"", *, dump: bool = False) -> list[Message]:
        self.asked.append((kind, payload))
        datagrams = self.answers[kind, dump]
        if self.refuses is not None and kind == self.refuses[0] and self.refuses[1] in payload:
            datagrams = captured("refused")
        told = [message for raw in datagrams for message in messages(raw)]
        answer = answer_in(told)
        assert answer is not None, "the recorded answer has no end"
        return answer

    def close(self) -> None:
        self.closed = True


def attributes_of(*pairs: tuple[int, bytes | int | str]) -> bytes:
    return b"".join(encode_attribute(kind, _raw(value)) for kind, value in pairs)


def _raw(value: bytes | int | str) -> bytes:
    if isinstance(value, int):
        return u32(value)
    return value.encode() + b"\0" if isinstance(value, str) else value
