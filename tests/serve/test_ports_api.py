"""One port, its samples, and bonds as the ports that people know."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import LinkTotals, PortView, Snapshot
from flapd.model.times import Edge
from flapd.serve.answers import encoded_table
from flapd.serve.bonds import with_members
from tests.serve.parts import FakeAgent, over_tcp, port, view
from tests.store.outages import WALL_NS, outage, unix
from tests.store.rings import BOOT, KEY, TRAFFIC, every, fill

ONE = "/api/v1/ports/mlx5_0/1"


def watching(directory: Path) -> FakeAgent:
    """One port, with 20 seconds of samples; it was two minutes into the boot."""
    agent = FakeAgent(directory)
    fill(directory, every(0.1, 100, 120))
    fill(directory, every(0.5, 100.05, 120), "slow")
    values = {"state": 4, TRAFFIC: 1, "counters/link_downed": 2, "counters/symbol_error": 0}
    shown = view(port(key=KEY), values=values)
    agent.shown = Snapshot(ports=(shown,), boot=BOOT, wall_offset_ns=WALL_NS)
    return agent


async def got(session: aiohttp.ClientSession, path: str, status: int = 200) -> Any:
    async with session.get(path) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def test_one_port_is_told_as_in_the_list(tmp_path: Path) -> None:
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        one = await got(session, ONE)
        (listed,) = (await got(session, "/api/v1/ports"))["items"]

    for item in (one, listed):
        item.pop("stale_seconds")
    assert one == listed


@pytest.mark.parametrize("path", ["mlx5_0/2", "mlx5_9/1", "mlx5_0/x", "mlx5_0/2/samples"])
async def test_a_port_that_is_not_there_is_not_found(tmp_path: Path, path: str) -> None:
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        error = (await got(session, f"/api/v1/ports/{path}", 404))["error"]

    assert (error["code"], error["parameter"]) == ("not_found", "port")


async def test_samples_are_told_by_the_names_and_times_that_people_know(tmp_path: Path) -> None:
    since = (unix(0) + 119_800_000_000) / 1e9
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        table = await got(
            session, f"{ONE}/samples?since={since}&counters=port_xmit_data,symbol_error"
        )

    assert table == {
        "columns": ["time", "port_xmit_data", "symbol_error"],
        "rows": [["2023-11-14T22:15:19.900000Z", 119, None]],
    }


async def test_all_samples_there_are_may_be_asked_for(tmp_path: Path) -> None:
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        table = await got(session, f"{ONE}/samples?since=0&counters=port_xmit_data")

    assert len(table["rows"]) == 200


async def test_samples_of_a_step_keep_the_lowest_and_the_highest(tmp_path: Path) -> None:
    path = f"{ONE}/samples?since={unix(99) // 10**9}&step=10s&counters=port_xmit_data"
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        table = await got(session, path)

    assert [row[1] for row in table["rows"]] == [100, 109, 110, 119]


async def test_without_a_choice_all_that_was_read_lately_is_told(tmp_path: Path) -> None:
    """The last minute of now: a boot of 2023 has no samples in it."""
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        table = await got(session, f"{ONE}/samples")

    assert table["columns"] == ["time", "link_downed", "port_xmit_data", "state", "symbol_error"]
    assert table["rows"] == []


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("counters=nothing", "counters"),
        ("counters=,", "counters"),
        ("step=0", "step"),
        ("step=2h", "step"),
        ("since=soon", "since"),
        ("until=1h", "until"),
    ],
)
async def test_a_wrong_question_for_samples_names_its_parameter(
    tmp_path: Path, query: str, parameter: str
) -> None:
    async with over_tcp(watching(tmp_path), tmp_path) as session:
        error = (await got(session, f"{ONE}/samples?{query}", 400))["error"]

    assert error["parameter"] == parameter


async def test_before_the_time_is_known_samples_have_none(tmp_path: Path) -> None:
    agent = watching(tmp_path)
    agent.shown = replace(agent.shown, wall_offset_ns=None)

    async with over_tcp(agent, tmp_path) as session:
        assert (await got(session, f"{ONE}/samples", 503))["error"]["code"] == "unavailable"


@pytest.mark.parametrize("rows", [0, 1, 4001, 9000])
def test_a_table_in_pieces_is_the_table(rows: int) -> None:
    table = [[number, None] for number in range(rows)]
    text = ",".join(f"[{number},null]" for number, _ in table)

    assert encoded_table(["a", "b"], table).decode() == f'{{"columns":["a","b"],"rows":[{text}]}}'


def bond() -> Iterator[PortView]:
    """A bond of two members, of which the second went down last; and another port."""
    key = port().key
    yield view(
        port(members=("eth0", "eth1")),
        totals=LinkTotals({"link": 1, "subnet": 0, "unknown": 0}, 1, 0, 100),
        penalty=10.0,
    )
    yield view(
        port(key=f"{key}/eth0", member="eth0"),
        totals=LinkTotals({"link": 2, "subnet": 0, "unknown": 1}, 2, 0, 10),
        last_down=Edge(1, 2, 0),
        last_down_ns=7,
        penalty=2500.0,
        flapping=True,
        witness_resets=1,
    )
    yield view(
        port(key=f"{key}/eth1", member="eth1"),
        totals=LinkTotals({"link": 4, "subnet": 0, "unknown": 0}, 0, 1, 1),
        last_down=Edge(3, 4, 0),
        last_down_ns=8,
    )
    yield view(port(key="other/1", device="mlx5_1"))


def test_a_bond_shows_what_its_members_did() -> None:
    shown, other = with_members(bond())

    assert shown.totals == LinkTotals({"link": 7, "subnet": 0, "unknown": 1}, 3, 1, 111)
    assert (shown.last_down, shown.last_down_ns) == (Edge(3, 4, 0), 8)
    assert (shown.flapping, shown.penalty, shown.witness_resets) == (True, 2500.0, 1)
    assert other.totals == LinkTotals()


async def test_a_member_is_no_port_of_its_own_and_its_flaps_are_its_bonds(tmp_path: Path) -> None:
    views = tuple(bond())
    members = {view.port.member: view.port.key for view in views}
    flaps = [
        replace(outage(f"f{number}", down=number), key=members[member], member=member)
        for number, member in enumerate(("eth0", "eth1", None))
    ]
    agent = FakeAgent(
        tmp_path, [replace(flap, down=replace(flap.down, wall_offset_ns=2**62)) for flap in flaps]
    )
    agent.shown = Snapshot(ports=views)

    async with over_tcp(agent, tmp_path) as session:
        items = (await got(session, "/api/v1/ports"))["items"]
        told = (await got(session, "/api/v1/flaps?port=mlx5_0/1"))["items"]

    assert [(item["id"], item["members"], item["flaps_24h"]) for item in items] == [
        (port().key, ["eth0", "eth1"], 2),
        ("other/1", [], 1),
    ]
    assert {item["member"] for item in told} == {"eth0", "eth1", None}
