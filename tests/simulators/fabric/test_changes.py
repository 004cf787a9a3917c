"""What comes, goes or gets another name is in the trees of its time, and in no other."""

import errno
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from simulators.fabric.changes import Change, Gone, NetdevReplaced, Renamed
from simulators.fabric.operations import Operations
from simulators.fabric.scenarios import all_drivers
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Spec, two_ports
from simulators.fabric.tree import epochs, simulated_ports
from tests.simulators.fabric.trees import answer, tree_at

SECOND_NS = 1_000_000_000
FLAPS = (Flap(1, 0.5), Flap(3, 0.5), Flap(7, 0.5))
CLASS = "/class/infiniband"
DOWNED = "ports/1/counters/link_downed"
STATE = "/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0/ports/1/state"


def with_changes(*changes: Change) -> Spec:
    return replace(two_ports(FLAPS, FLAPS), changes=changes)


def over_time(spec: Spec, path: str, *seconds: float) -> list[str | int | None]:
    return [answer(tree_at(spec, second), path, second) for second in seconds]


def test_a_device_that_is_gone_has_no_files_and_comes_back_counting_from_0() -> None:
    spec = with_changes(Gone("mlx5_0", 4, 6))

    assert over_time(spec, f"{CLASS}/mlx5_0/{DOWNED}", 3.9, 4, 5.9, 6, 7) == [
        "2",
        None,
        None,
        "0",
        "1",
    ]
    assert over_time(spec, "/class/net/ib0/carrier_down_count", 3.9, 4, 6, 7) == [
        "3",
        None,
        "0",
        "1",
    ]
    assert over_time(spec, f"{CLASS}/mlx5_1/{DOWNED}", 5) == ["0"]


def test_a_bond_vanishes_with_its_members_and_they_count_anew() -> None:
    spec = replace(all_drivers(), changes=(Gone("mlx5_bond_0", 4, 6),))

    for name in ("bond0", "eth40", "eth41"):
        path = f"/class/net/{name}/carrier_down_count"
        assert over_time(spec, path, 3.9, 4, 6) == ["2", None, "0"]


def test_a_device_can_come_back_with_its_counters() -> None:
    spec = with_changes(Gone("mlx5_0", 4, 6, restarted=False))

    assert over_time(spec, f"{CLASS}/mlx5_0/{DOWNED}", 3.9, 4, 6, 7) == ["2", None, "2", "3"]


def test_a_device_without_a_begin_is_plugged_in_later() -> None:
    spec = with_changes(Gone("mlx5_0", end_seconds=2))

    assert over_time(spec, f"{CLASS}/mlx5_0/{DOWNED}", -5, 1.9, 2, 99) == [None, None, "0", "2"]


def test_a_device_without_an_end_is_removed() -> None:
    spec = with_changes(Gone("mlx5_0", begin_seconds=2))

    assert over_time(spec, f"{CLASS}/mlx5_0/{DOWNED}", -5, 1.9, 2, 99) == ["0", "1", None, None]


def test_the_classes_stay_when_the_last_device_is_gone() -> None:
    spec = with_changes(Gone("mlx5_0", begin_seconds=2), Gone("mlx5_1", begin_seconds=2))

    assert CLASS in tree_at(spec, 3)


def test_a_port_can_be_gone_while_its_device_stays() -> None:
    spec = with_changes(Gone("mlx5_0", 4, 6, number=1))

    assert over_time(spec, f"{CLASS}/mlx5_0/{DOWNED}", 3.9, 4, 6) == ["2", None, "0"]
    assert over_time(spec, f"{CLASS}/mlx5_0/node_type", 5) == ["1: CA"]


def test_a_renamed_device_goes_on_counting_under_its_other_name() -> None:
    spec = with_changes(Renamed("mlx5_0", 4, "mlx5_9"), Renamed("mlx5_0", 8, "mlx5_0"))

    assert over_time(spec, f"{CLASS}/mlx5_0/{DOWNED}", 3.9, 4, 7, 8) == ["2", None, None, "3"]
    assert over_time(spec, f"{CLASS}/mlx5_9/{DOWNED}", 3.9, 4, 7, 8) == [None, "2", "3", None]
    assert over_time(spec, f"{CLASS}/mlx5_9/device/net/ib0/carrier", 5) == ["1"]


def test_a_replaced_netdev_counts_from_0_under_another_name_and_index() -> None:
    spec = with_changes(NetdevReplaced("mlx5_1", 4, "eth9"))
    gid = f"{CLASS}/mlx5_1/ports/1/gid_attrs/ndevs/0"

    assert over_time(spec, "/class/net/eth2/carrier_down_count", 3.9, 4) == ["3", None]
    assert over_time(spec, "/class/net/eth9/carrier_down_count", 3.9, 4, 7) == [None, "0", "1"]
    assert over_time(spec, gid, 3.9, 4) == ["eth2", "eth9"]
    before = answer(tree_at(spec, 3), "/class/net/eth2/ifindex", 3)
    assert before != answer(tree_at(spec, 5), "/class/net/eth9/ifindex", 5)


@dataclass
class Info:
    fh: int = 0
    direct_io: int = 0


@dataclass
class Clock:
    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.mark.parametrize(
    ("change", "seen_later"),
    [
        (Gone("mlx5_0", 4, 6), b"4: ACTIVE\n"),
        (Renamed("mlx5_0", 4, "mlx5_9"), None),
        (Gone("mlx5_0", 4), None),
        (NetdevReplaced("mlx5_0", 4, "ib9"), b"4: ACTIVE\n"),
    ],
)
def test_who_keeps_a_file_open_never_sees_what_comes_in_its_place(
    change: Change, seen_later: bytes | None
) -> None:
    clock = Clock()
    fabric = Operations(epochs(simulated_ports(with_changes(change), 0, 0)), {}, clock)
    kept = Info()
    fabric.open(STATE, kept)
    stays = isinstance(change, NetdevReplaced)

    def kept_gives() -> bytes | int | None:
        return outcome(lambda: fabric.read("", 4096, 0, kept))

    def opened_gives() -> bytes | int | None:
        return outcome(lambda: opened_and_read(fabric))

    assert kept_gives() == b"4: ACTIVE\n"
    clock.now_ns = 5 * SECOND_NS
    assert kept_gives() == (b"4: ACTIVE\n" if stays else errno.ENODEV)
    assert opened_gives() == (b"4: ACTIVE\n" if stays else errno.ENOENT)
    clock.now_ns = 6 * SECOND_NS
    assert kept_gives() == (b"4: ACTIVE\n" if stays else errno.ENODEV)
    assert opened_gives() == (seen_later or errno.ENOENT)


def opened_and_read(fabric: Operations) -> bytes:
    opened = Info()
    fabric.open(STATE, opened)
    return fabric.read("", 4096, 0, opened)


def outcome(read: Callable[[], bytes]) -> bytes | int | None:
    try:
        return read()
    except OSError as error:
        return error.errno


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: Gone("mlx5_0"), "begin_seconds, end_seconds"),
        (lambda: Gone("mlx5_0", 2, 1), "end_seconds"),
        (lambda: with_changes(Gone("mlx5_7", 1)), "mlx5_7"),
        (lambda: with_changes(Gone("mlx5_0", 1, number=2)), "mlx5_0"),
        (lambda: with_changes(NetdevReplaced("mlx5_0", 1, "x", number=2)), "mlx5_0"),
    ],
)
def test_a_change_of_what_is_not_there_is_refused(change: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        change()
