from pathlib import Path

from flapd.core.fabric.catalogue import LINK_DOWN_EVENTS_PHY, LINK_DOWNED, Tier
from flapd.model.observation import READ_STATISTICS, READ_WITNESS
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.plan import plan_of
from flapd.sources.port_rings import PortRings, RingSettings
from flapd.sources.sample_draft import Sweep
from flapd.store.remembered import Known, remembered_samples
from flapd.store.ring import read_ring, ring_path
from flapd.store.samples import samples
from tests.trees import lay_out

PORT = Port(
    "guid/1", "mlx5_0", 1, "InfiniBand", driver="mlx5", netdev="ib0", witnesses=(LINK_DOWNED,)
)
DISCARDS, VL15 = "ethtool/rx_discards_phy", "counters/VL15_dropped"
INTERVALS_NS: dict[Tier, int] = {
    "fast": SECOND_NS // 10,
    "slow": SECOND_NS // 2,
    "rare": 30 * SECOND_NS,
}
KNOWN = {LINK_DOWNED: 3, VL15: 7, LINK_DOWN_EVENTS_PHY: 1003, DISCARDS: 40}


def rings_of(root: Path, port: Port = PORT, *, statistics: bool = True) -> PortRings:
    lay_out(
        root / "sys/class/infiniband/mlx5_0/ports/1",
        {"state": "4: ACTIVE\n", "counters/link_downed": "3\n", "counters/VL15_dropped": "7\n"},
    )
    settings = RingSettings(
        root / "ring", "boot1", 900 * SECOND_NS, INTERVALS_NS, statistics=statistics
    )
    return PortRings(settings, port, plan_of(root / "sys", port))


def sweep_at(second: float, reads: int = 0) -> Sweep:
    before_ns = round(second * SECOND_NS)
    return Sweep(before_ns, before_ns + 1000, READ_WITNESS | reads)


def shown(root: Path, *names: str) -> list[list[int | None]]:
    return samples(root / "ring", PORT.key, 0, names, 0).rows


def test_statistics_are_remembered_when_they_were_told_and_not_as_read_later(
    tmp_path: Path,
) -> None:
    rings = rings_of(tmp_path)
    rings.remember("fast", sweep_at(1, READ_STATISTICS), KNOWN)
    rings.remember("rare", sweep_at(20), KNOWN)

    assert shown(tmp_path, DISCARDS, VL15) == [
        [1 * SECOND_NS, 40, None],
        [20 * SECOND_NS, None, 7],
    ]


def test_a_killed_agent_goes_on_by_the_statistics_of_the_ring(tmp_path: Path) -> None:
    """Counted together with the witness, the link being at rest."""
    rings = rings_of(tmp_path)
    rings.remember("fast", sweep_at(1, READ_STATISTICS), KNOWN)
    rings.close()

    known = Known(PORT.counted_by, read_until_ns=0)
    first, second = remembered_samples(tmp_path / "ring", "boot1", lambda _: known)

    assert first.reads == READ_WITNESS
    assert second.reads == READ_WITNESS | READ_STATISTICS
    both = {LINK_DOWNED: 3, LINK_DOWN_EVENTS_PHY: 1003}
    assert both.items() <= second.values.items()


def test_however_often_they_are_asked_for_no_more_is_kept_than_there_is_room_for(
    tmp_path: Path,
) -> None:
    rings = rings_of(tmp_path)
    for second in range(1, 1000):
        rings.remember("fast", sweep_at(second, READ_STATISTICS), KNOWN)
        if second % 30 == 0:
            rings.remember("rare", sweep_at(second + 0.5), KNOWN)

    begins = [row[0] for row in shown(tmp_path, VL15)]
    assert begins[0] is not None
    assert 1000 * SECOND_NS - begins[0] > 870 * SECOND_NS


def test_where_no_statistics_are_asked_for_there_is_no_room_for_any(tmp_path: Path) -> None:
    rings_of(tmp_path, statistics=False)

    columns = read_ring(ring_path(tmp_path / "ring", PORT.key, "rare")).columns
    assert VL15 in columns
    assert not [name for name in columns if name.startswith("ethtool/")]


def test_a_ring_that_cannot_be_made_is_missing_and_the_others_go_on(tmp_path: Path) -> None:
    in_its_place = ring_path(tmp_path / "ring", PORT.key, "rare")
    in_its_place.mkdir(parents=True)
    (in_its_place / "file").touch()
    rings = rings_of(tmp_path)

    rings.remember("rare", sweep_at(1, READ_STATISTICS), KNOWN)
    rings.remember("fast", sweep_at(2), KNOWN)

    assert rings.missing == 1
    assert shown(tmp_path, LINK_DOWNED) == [[2 * SECOND_NS, 3]]
