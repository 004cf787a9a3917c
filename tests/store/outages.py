"""Outages as tests need them: only what matters is said."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.model.event import Outage
from flapd.model.times import SECOND_NS, Edge

WALL_NS = 1_700_000_000 * SECOND_NS


def outage(flap_id: str = "a", revision: int = 1, **changes: Any) -> Outage:
    """A closed flap of port mlx5_0/1, from second 10 to second 12 unless `down`, `up` say else."""
    down = changes.pop("down", 10)
    up = changes.pop("up", 12)
    fields: dict[str, Any] = {
        "node": "node17",
        "key": "0x1/1",
        "port": "mlx5_0/1",
        "guid": "0x1",
        "boot": "boot-1",
        "kind": "flap",
        "status": "open" if up is None else "closed",
        "cause": "link",
        "seen": "observed",
        "layer": "physical",
        "down": edge(down),
        "up": None if up is None else edge(up),
        "count": 1,
        "count_at_least": False,
        "settled": True,
        "evidence": ("link_downed",),
        "recorded_ns": 0,
    }
    return with_length(Outage(id=flap_id, revision=revision, **{**fields, **changes}))


def with_length(outage: Outage) -> Outage:
    """Its length by its edges."""
    if outage.up is None:
        return replace(outage, down_ns_min=None, down_ns_max=None)
    return replace(
        outage,
        down_ns_min=max(0, outage.up.earliest_ns - outage.down.latest_ns),
        down_ns_max=outage.up.latest_ns - outage.down.earliest_ns,
    )


def edge(second: float) -> Edge:
    ns = round(second * SECOND_NS)
    return Edge(ns, ns, WALL_NS)


def unix(second: float) -> int:
    return WALL_NS + round(second * SECOND_NS)


@st.composite
def outages(draw: st.DrawFn, flap_id: str = "a", revision: int = 1) -> Outage:
    """Any outage; two in three of them closed."""
    down = draw(st.integers(0, 1000))
    status = draw(st.sampled_from(["open", "closed", "lost"]))
    up = None if status != "closed" else down + draw(st.sampled_from([0, 0.1, 1, 3, 60, 400]))
    number = draw(st.integers(0, 2))
    return outage(
        flap_id,
        revision,
        down=down,
        up=up,
        status=status,
        key=f"key{number}",
        port=f"mlx5_{number}/1",
        guid=draw(st.sampled_from([None, "0x1", "0x2"])),
        kind=draw(st.sampled_from(["flap", "drop"])),
        cause=draw(st.sampled_from(["link", "subnet", "unknown", "admin", "boot"])),
        layer=draw(st.sampled_from(["physical", "logical"])),
        seen=draw(st.sampled_from(["observed", "unseen", "while_away"])),
        count=draw(st.integers(1, 9)),
        recorded_ns=draw(st.integers(0, 2000)) * SECOND_NS,
    )
