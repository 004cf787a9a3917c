"""Logs: a chatty NCCL INFO log without a fault, as eight ranks write it, looked through."""

import random
import time

from flapd.core.job.clock import Clock
from flapd.core.job.stream import LogStream
from tests.bench.figure import Figure, Scale

_CHUNK_BYTES = 64 * 1024
_MEGABYTE = 1_000_000
_BYTES_A_SAMPLE = 64
_SAID = (
    "Channel {n:02d}/0 : {rank}[{rank}] -> {n}[{n}] via P2P/CUMEM/read",
    "NET/IB: NCCL Dev {rank} IbDev {rank} Port 1 qpn {big} mtu 5 LID {n} fifoRkey=0x{big:x}",
    "AllReduce: opCount {n:x} sendbuff 0x7f{big:x} recvbuff 0x7f{big:x} count {big} root 0",
    "Channel {n:02d}/0 : {rank}[{rank}] -> {n}[{n}] [send] via NET/IB/{rank}/GDRDMA",
)
_LINE = "node01:{pid}:{tid} [{rank}] NCCL INFO "


def logs(scale: Scale) -> list[Figure]:
    data = chatty_log(scale.samples * _BYTES_A_SAMPLE)
    stream, found = LogStream("job.log"), 0
    began = time.process_time()
    for start in range(0, len(data), _CHUNK_BYTES):
        found += len(stream.feed(data[start : start + _CHUNK_BYTES], Clock()))
    seconds = time.process_time() - began
    return [
        Figure(
            what="reading a chatty NCCL INFO log with no fault in it",
            unit="MB/s a core",
            value=len(data) / seconds / _MEGABYTE,
            budget=200,
            at_least=True,
            note=f"{stream.lines:,} lines, {found} faults",
        )
    ]


def chatty_log(size: int, seed: int = 1) -> bytes:
    """Whole lines, so many bytes or a few more."""
    chance, lines, length = random.Random(seed), list[str](), 0
    while length < size:
        rank = chance.randrange(8)
        line = (_LINE + chance.choice(_SAID)).format(
            rank=rank,
            pid=14000 + rank,
            tid=15000 + rank,
            n=chance.randrange(1024),
            big=chance.getrandbits(40),
        )
        lines.append(line)
        length += len(line) + 1
    return ("\n".join(lines) + "\n").encode()
