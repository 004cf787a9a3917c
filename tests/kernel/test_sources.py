"""The kernel's own sources, as a sampler in the virtual machine hears them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flapd.sources.kernel_voices import NOT_HELD
from tests.kernel.image import missing

DEVICES = ("rxe0", "rxe1", "rxe2")
TELLS_OF_DEVICES = (6, 12)
WAITS_FOR_EVER_SECONDS = 10.0
"""What is held, and not let go of, does not go at all."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
]


@pytest.fixture(scope="module")
def told(bare: Path) -> Any:
    return json.loads((bare / "sources.json").read_text())


def test_all_the_kernel_has_is_heard_but_devices_that_could_not_go_are_not_held(told: Any) -> None:
    assert told["silent"] == {}
    assert told["sources"]["rdma_netlink"] == told["sources"]["kernel_log"] == "on"
    assert told["sources"]["verbs"] == NOT_HELD


def test_a_device_goes_where_nobody_holds_it(told: Any, figure: Callable[[str], None]) -> None:
    figure(f"a device that is not held: gone within {told['deleted_within']:.1f} s")

    assert told["deleted_within"] < WAITS_FOR_EVER_SECONDS


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("when", ["up", "down"])
def test_netlink_and_sysfs_say_the_same_of_a_port(told: Any, device: str, when: str) -> None:
    said = told["ports"][when][device]

    assert said["by_netlink"] == said["by_files"]
    assert len(said["by_netlink"]) == 3 + 15  # what it is, and its counters


def test_a_software_card_has_no_statistics_and_no_module_and_says_so(told: Any) -> None:
    assert told["sources"]["ethtool"] == "module: ENOTSUP, statistics: ENOTSUP"
    assert told["sources"]["module"] == "ENOTSUP"


def test_netlink_tells_the_counters_that_files_tell(told: Any) -> None:
    assert told["by_sampler"] == told["by_files"]
    assert len(told["by_sampler"]) == 15


def test_a_line_of_the_kernel_is_told_after_what_it_tells_of(told: Any) -> None:
    hint = told["hint"]

    assert hint["about"] == "link_down"
    assert 0 < hint["logged"] <= hint["received"]


def test_a_device_registered_anew_is_told_as_such_although_netlink_finds_it(told: Any) -> None:
    """By what a descriptor says that was kept, or as a port that is there again."""
    assert told["registered_anew"] in {"Sample", "PortSeen"}


def test_a_kernel_that_tells_of_devices_is_understood_and_an_older_one_does_without(
    told: Any, figure: Callable[[str], None]
) -> None:
    """The group is older than its messages (include/uapi/rdma/rdma_netlink.h)."""
    release = tuple(map(int, told["kernel"].split(".")[:2]))
    events = told["monitor"] or []
    kinds = [event["kind"] for event in events if event["device"] == "rxe0"]

    figure(f"Linux {told['kernel']} tells of rxe0: {kinds}")
    assert (told["monitor"] is not None) == (release >= TELLS_OF_DEVICES)
    assert ("unregistered" in kinds and "registered" in kinds) == (release >= TELLS_OF_DEVICES)
