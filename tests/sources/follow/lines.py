"""Lines of logs, each with a number of its own to be recognised by."""

from flapd.model.fault import Fault
from flapd.model.finding import Finding


def timeout(number: int) -> str:
    return (
        "[rank3]:[E1130 08:32:11.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught"
        f" collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=1024,"
        " NumelOut=1024, Timeout(ms)=600000) ran for 600026 milliseconds before timing out.\n"
    )


def chatter(number: int) -> str:
    return f"node1:{number}:{number} [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"


def numbers(findings: list[Finding]) -> list[int]:
    return [found.seq for found in findings if isinstance(found, Fault) and found.seq is not None]
