"""What each release does between the first error and the job's death."""

import math

import pytest
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import price
from flapd.core.cost.releases import Launcher, Releases, release, with_releases
from flapd.model.errors import FlapdError
from flapd.model.given import exactly

INPUTS = Inputs(gpus=exactly(1024, "option"), down_seconds=exactly(10.0, "option"))


@pytest.mark.parametrize(
    ("nccl", "timeout", "hands_on"),
    [
        ("2.10.3", 14, True),
        ("2.13.4", 14, True),
        ("2.14.3", 18, True),
        ("2.17.1", 18, True),
        ("2.18.1", 18, False),
        ("2.18.6", 18, False),
        ("2.19.3", 18, True),
        ("2.22.3", 18, True),
        ("2.23.4", 20, True),
        ("2.27.5+cuda12.9", 20, True),
    ],
)
def test_nccl_by_release(nccl: str, timeout: int, hands_on: bool) -> None:
    found = with_releases(INPUTS, Releases(nccl=nccl))

    assert found.ib_timeout == exactly(timeout, "version")
    assert found.coordinated == exactly(hands_on, "version")


@pytest.mark.parametrize(
    ("torch", "watchdog", "wait"),
    [
        ("1.13.1", 1800, (0, 1, 1)),
        ("2.1.2", 1800, (0, 1, 1)),
        ("2.2.2", 600, (0, 1, 121)),
        ("2.4.0", 600, (0, 1, 601)),
        ("2.6.0+cu124", 600, (0, 1, 541)),
        ("2.7.1", 600, (0, 16, 541)),
        ("2.8.0", 600, (60, 61, 541)),
        ("2.13.0", 600, (60, 61, 541)),
    ],
)
def test_torch_by_release(torch: str, watchdog: float, wait: tuple[float, ...]) -> None:
    found = with_releases(INPUTS, Releases(torch=torch))

    propagation = found.propagation_seconds
    assert found.watchdog_seconds == exactly(watchdog, "version")
    assert (propagation.low, propagation.value, propagation.high) == wait


@pytest.mark.parametrize(
    ("launcher", "more"), [("torchrun", 45), ("slurm-kill-on-bad-exit", 30), ("slurm", 600)]
)
def test_the_launcher_may_take_longer_to_end_the_last_rank(launcher: Launcher, more: float) -> None:
    without = with_releases(INPUTS, Releases(torch="2.8.0")).propagation_seconds
    found = with_releases(INPUTS, Releases(torch="2.8.0", launcher=launcher)).propagation_seconds

    assert found == replace(without, high=without.high + more)


def test_what_somebody_said_is_kept() -> None:
    said = replace(
        INPUTS,
        ib_timeout=exactly(22, "environment"),
        propagation_seconds=exactly(3.0, "configuration"),
        watchdog_seconds=exactly(120.0, "log"),
    )

    found = with_releases(said, Releases("2.27.5", "2.8.0", "torchrun"))

    assert found.ib_timeout.value == 22
    assert found.propagation_seconds == said.propagation_seconds
    assert found.watchdog_seconds == said.watchdog_seconds


def test_a_job_whose_errors_end_nothing_hangs_for_ever() -> None:
    found = with_releases(INPUTS, Releases(nccl="2.20.5", error_handling=0))

    assert math.isinf(price(found.likely()).parts.lost)


def test_without_error_reports_only_the_watchdog_ends_the_job() -> None:
    found = with_releases(INPUTS, Releases(nccl="2.18.1", torch="2.1.0"))

    assert price(found.likely()).regime == "watchdog"
    assert price(found.likely()).parts.detect == 1801


@pytest.mark.parametrize("written", ["", "2", "latest", "2.x", "-1.2", "\u0662.1"])
def test_what_is_no_version_is_refused_with_what_would_be_right(written: str) -> None:
    with pytest.raises(FlapdError, match=r"a version such as 2\.27\.5 would be right"):
        release(written)
