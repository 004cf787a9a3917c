"""One node on which something else is wrong with each port, and all at once."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from flapd.model.times import SECOND_NS
from simulators.fabric.mount import fuse_missing
from simulators.fabric.scenarios import bad_node
from simulators.fabric.truth import Truth
from tests.system.harness import SimulatedNode, simulated_fabric, until
from tests.system.test_eight_ports import total

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

BEGINS_AFTER_SECONDS = 5.0


class Shown:
    """What the agent says of all ports, at moments of the schedule and at its end."""

    def __init__(self, node: SimulatedNode, truth: Truth) -> None:
        self._node = node
        self._origin_ns = truth.outages[0].down_monotonic_ns - round(2.5 * SECOND_NS)
        self.hanging = self.at(2.2)
        self.failing = self.at(4.5)
        self.late = self.at(16.0)
        self.flaps = node.get("/api/v1/flaps?limit=1000")["items"]
        self.metrics = node.get_text("/metrics")

    def at(self, seconds: float) -> dict[str, Any]:
        """By device."""
        until_ns = self._origin_ns + round(seconds * SECOND_NS)
        time.sleep(max(0, until_ns - time.monotonic_ns()) / SECOND_NS)
        return {item["device"]: item for item in self._node.get("/api/v1/ports")["items"]}

    def downs(self, device: str) -> int:
        """Those that lie within seconds of each other may be one flap."""
        return sum(flap["count"] for flap in self.flaps if flap["port"] == f"{device}/1")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    node = SimulatedNode(tmp_path_factory.mktemp("bad"))
    try:
        with simulated_fabric(node, bad_node(), BEGINS_AFTER_SECONDS) as truth:
            node.start()
            until(node.is_ready, "a ready agent")
            yield Shown(node, truth)
            node.terminate()
    finally:
        with suppress(ProcessLookupError):
            node.kill()


def test_a_device_that_hangs_is_told_and_counted_once_it_is_back(shown: Shown) -> None:
    hanging = shown.hanging["mlx5_0"]
    assert "waits in one read" in hanging["sources"]["sysfs"]
    assert (hanging["readable"], hanging["up"]) == (False, None)
    assert shown.downs("mlx5_0") == 2
    assert shown.late["mlx5_0"]["readable"]


def test_a_device_that_gives_an_error_says_which_and_loses_nothing(shown: Shown) -> None:
    failing = shown.failing["mlx5_1"]
    assert "EIO" in failing["sources"]["sysfs"]
    assert failing["witness"] == {"name": "link_downed", "value": None, "status": "unreadable"}
    assert failing["counters"]["symbol_error"] is None
    assert shown.downs("mlx5_1") == 2


def test_one_counter_that_is_refused_is_null_and_nothing_else_of_its_port(shown: Shown) -> None:
    counters = shown.late["mlx5_2"]["counters"]
    assert [name for name, value in counters.items() if value is None] == ["symbol_error"]
    assert shown.downs("mlx5_2") == 2


def test_counters_that_answer_in_words_leave_counting_to_the_state(shown: Shown) -> None:
    port = shown.late["mlx5_3"]
    assert port["witness"]["status"] == "unreadable"
    assert port["counters"]["link_downed"] is None
    assert port["up"] is True
    assert shown.downs("mlx5_3") == 2


def test_a_counter_reset_by_somebody_is_told_and_no_flap(shown: Shown) -> None:
    assert shown.downs("mlx5_4") == 2
    assert total(shown.metrics, "flapd_port_counter_resets_total", "mlx5_4/1") == 1
    assert shown.late["mlx5_4"]["witness"]["value"] == 1


def test_a_port_that_was_never_up_is_listed_and_not_watched(shown: Shown) -> None:
    port = shown.late["mlx5_5"]
    assert (port["up"], port["ever_up"], port["watched"]) == (False, False, False)
    assert shown.downs("mlx5_5") == 0
    assert total(shown.metrics, "flapd_port_watched", "mlx5_5/1") == 0


def test_a_port_without_counters_is_watched_by_its_state(shown: Shown) -> None:
    assert shown.late["mlx5_6"]["witness"]["status"] == "none"
    assert shown.downs("mlx5_6") == 2


def test_a_witness_that_never_moves_lies_and_says_so(shown: Shown) -> None:
    assert shown.late["mlx5_7"]["witness"]["status"] == "lying"
    downs = shown.downs("mlx5_7")
    assert downs in {1, 2}, "the first is shorter than the state's interval"
    assert total(shown.metrics, "flapd_link_downs_total", "mlx5_7/1") == downs


def test_no_port_suffers_for_another(shown: Shown) -> None:
    for device, port in shown.hanging.items():
        if device != "mlx5_0":
            assert port["stale_seconds"] < 1, device
