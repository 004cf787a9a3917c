"""RDMA traffic over a cable that is pulled: what application, kernel and flapd tell of it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.guest.traffic import NEAR, OUTAGE_SECONDS
from tests.kernel.image import is_debian_12, missing
from tests.kernel.told import Watched, assert_each_is_found

RETRIES_EXCEEDED = 12
"""IBV_WC_RETRY_EXC_ERR (rdma-core: libibverbs/verbs.h), NCCL's status=12."""
MOST_OF_IT = 0.75
"""Of an outage a write stands still: it may be posted after the link went."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
    pytest.mark.skipif(not is_debian_12(), reason="rxe of Linux 6.12 gives up once a link goes"),
]


@pytest.fixture(scope="module", params=range(len(OUTAGE_SECONDS)), ids=OUTAGE_SECONDS)
def outage(watched: Watched, request: pytest.FixtureRequest) -> dict[str, Any]:
    told: dict[str, Any] = watched.scenario("traffic")[request.param]
    return told


def taken_ns(write: list[int]) -> int:
    begin_ns, end_ns, _ = write
    return end_ns - begin_ns


def test_what_stops_the_traffic_is_told_beside_it(
    watched: Watched, outage: dict[str, Any], figure: Callable[[str], None]
) -> None:
    """The patient write stands still at least until the link is back, and then goes through."""
    (found,) = watched.outages_of(outage)
    begin_ns, end_ns, status = max(outage["application"]["patient"]["writes"], key=taken_ns)

    assert_each_is_found([found], outage["true"])
    (true,) = outage["true"]
    assert status == 0
    assert found.up is not None
    assert begin_ns <= found.up.latest_ns
    assert found.up.earliest_ns <= end_ns
    assert end_ns - begin_ns > MOST_OF_IT * (true["up"][0] - true["down"][1])
    assert found.down_ns_min is not None
    assert found.down_ns_max is not None
    figure(
        f"{watched.name}: a write stood still for {(end_ns - begin_ns) / 1e9:.2f} s, the link was "
        f"down for {found.down_ns_min / 1e9:.2f} to {found.down_ns_max / 1e9:.2f} s; "
        f"counted meanwhile: {outage['counted']}"
    )


def test_a_short_budget_ends_in_an_error_within_the_outage(
    watched: Watched, outage: dict[str, Any], figure: Callable[[str], None]
) -> None:
    (found,) = watched.outages_of(outage)
    begin_ns, end_ns, status = outage["application"]["hasty"]["writes"][-1]

    assert status == RETRIES_EXCEEDED
    assert found.up is not None
    assert found.down.earliest_ns <= end_ns <= found.up.latest_ns
    figure(f"{watched.name}: retries exceeded after {(end_ns - begin_ns) / 1e9:.2f} s")


def test_retransmissions_are_counted_and_the_end_of_retrying(outage: dict[str, Any]) -> None:
    """flapd showed these values when the guest went on: it waited for that."""
    assert outage["counted"]["completer_retry_err"] > 0
    assert outage["counted"]["retry_exceeded_err"] == 1


def test_its_queue_pairs_are_found_on_the_ports_that_carry_it(outage: dict[str, Any]) -> None:
    """A patient and a hasty one of each end, of one process."""
    pairs, keys = outage["queue_pairs"], outage["keys"]

    assert pairs["before"]["blind_to"] == []
    assert pairs["before"]["all"] == {str(pairs["pid"]): dict.fromkeys(keys.values(), 2)}
    assert pairs["before"]["in_error"] == {}


def test_the_one_that_used_up_its_retries_is_found_in_error(outage: dict[str, Any]) -> None:
    pairs, keys = outage["queue_pairs"], outage["keys"]

    assert pairs["after"]["all"] == pairs["before"]["all"]
    assert pairs["after"]["in_error"] == {str(pairs["pid"]): {keys[NEAR]: 1}}
