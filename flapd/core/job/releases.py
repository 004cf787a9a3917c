"""NCCL releases by the line of net_ib that prints a message: a hint where no version is known.

src/transport/net_ib.cc of each release tag, src/transport/net_ib/common.cc and p2p.cc from 2.29.
"""

_EVENT_LINES = {
    73: "2.7.8",
    100: "2.20.5",
    101: "2.21.5",
    103: "2.22.3",
    171: "2.23.4",
    173: "2.24.3-2.25.1",
    179: "2.26.2-2.26.6",
    199: "2.27",
    212: "2.28.3",
    253: "2.28.7-2.28.9",
}
_COMPLETION_LINES = {
    818: "2.7.8",
    839: "2.8.4",
    846: "2.9.9",
    881: "2.10.3",
    883: "2.11.4",
    1198: "2.12.12",
    1238: "2.13.4",
    1237: "2.14.3-2.15.5",
    1252: "2.16.5",
    1261: "2.17.1",
    1294: "2.18.1-2.18.3",
    1295: "2.18.6",
    1333: "2.19.3",
    1696: "2.20.5",
    1909: "2.21.5",
    1984: "2.22.3",
    2121: "2.23.4",
    2244: "2.24.3-2.25.1",
    2358: "2.26.2",
    2359: "2.26.6",
    2449: "2.27.3",
    2451: "2.27.5",
    2458: "2.27.7",
    2470: "2.28.3",
    2543: "2.28.7-2.28.9",
}
_LINES = {
    "net_ib.cc": _EVENT_LINES | _COMPLETION_LINES,
    "common.cc": {88: "2.29.2", 134: "2.29.7", 159: "2.30.3", 179: "2.30.7"},
    "p2p.cc": {550: "2.29.2", 651: "2.29.7", 648: "2.30.3", 688: "2.30.7"},
}


def release_at(file: str, line: int) -> str | None:
    """None where no release or several far apart have it there."""
    return _LINES.get(file.rpartition("/")[2], {}).get(line)
