"""Entries as journalctl writes them become lines with their own time."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.job.forms import FORMS
from flapd.core.job.sieve import Sieve
from flapd.model.fault import Fault
from flapd.model.finding import Finding
from flapd.sources.follow.journal import Journal
from flapd.sources.follow.position import Position

PORT_ERROR = (
    "node1:7:8 [0] transport/net_ib.cc:100 NCCL WARN NET/IB : mlx5_0:1 Got async event : port error"
)


class Told:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.positions: list[Position] = []
        self.journal = Journal(
            "node1", Sieve(FORMS), "", self.findings.extend, self.positions.append
        )

    def take(self, message: Any, **fields: Any) -> None:
        entry = {"__CURSOR": "s=1;i=2", "__REALTIME_TIMESTAMP": "1796056069160001"}
        self.journal.take(json.dumps({**entry, "MESSAGE": message, **fields}).encode())


def test_an_entry_is_told_with_the_time_the_journal_took_it() -> None:
    told = Told()
    told.take(PORT_ERROR)

    (fault,) = told.findings
    assert isinstance(fault, Fault)
    assert (fault.hca, fault.arrived_ns) == ("mlx5_0", 1796056069160001000)
    assert told.positions[0].cursor == "s=1;i=2"


def test_what_is_no_text_is_an_array_of_bytes() -> None:
    told = Told()
    told.take([*PORT_ERROR.encode(), 0xFF])

    assert len(told.findings) == 1


def test_several_lines_of_one_entry_are_each_read() -> None:
    told = Told()
    told.take(f"first\n{PORT_ERROR}\nlast")

    assert len(told.findings) == 1


def test_what_flapd_itself_says_is_not_read() -> None:
    """It quotes faults in its own log: each would be told again, for ever."""
    told = Told()
    told.take(PORT_ERROR, SYSLOG_IDENTIFIER="flapd")
    told.take(PORT_ERROR, _SYSTEMD_UNIT="flapd.service")

    assert told.findings == []


@given(st.binary() | st.dictionaries(st.text(), st.text()).map(lambda it: json.dumps(it).encode()))
def test_what_is_no_entry_is_left_out(line: bytes) -> None:
    told = Told()
    told.journal.take(line)

    assert told.findings == []
