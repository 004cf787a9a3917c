"""The timeouts in force: who is believed, what is told of odd values, what remains unsure."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.inputs import Inputs
from flapd.core.cost.settings import JobSettings
from flapd.core.job.environment import ALLOWED, allowed_of, c_integer, conf_of
from flapd.core.job.policy import Evidence, conf_files_of, policy_in_force
from flapd.model.duration import parse_duration
from flapd.model.finding import Setting
from flapd.model.given import Given, exactly
from flapd.model.job import ReadFile

EVERYBODY: dict[str, Any] = {
    "told": (Setting("NCCL_IB_TIMEOUT", "19"),),
    "environment": {"NCCL_IB_TIMEOUT": "20"},
    "conf_files": (
        ReadFile("/root/.nccl.conf", "NCCL_IB_TIMEOUT=21\n"),
        ReadFile("/etc/nccl.conf", "# of the image\nNCCL_IB_TIMEOUT = 22\n"),
    ),
    "configuration": JobSettings(ib_timeout=23),
    "nccl": "2.20.5",
}
NOBODY: dict[str, Any] = {"environment": {}, "conf_files": (ReadFile("/etc/nccl.conf", ""),)}


@pytest.mark.parametrize(
    ("silent", "value", "source"),
    [
        ({}, 19, "log"),
        ({"told": ()}, 20, "environment"),
        ({"told": (), "environment": {}}, 21, "conf_file"),
        (
            {"told": (), "environment": {}, "conf_files": EVERYBODY["conf_files"][1:]},
            22,
            "conf_file",
        ),
        ({"told": (), **NOBODY}, 23, "configuration"),
        ({"told": (), **NOBODY, "configuration": JobSettings()}, 18, "version"),
        ({"told": (), **NOBODY, "configuration": JobSettings(), "nccl": None}, 20, "default"),
    ],
)
def test_the_best_witness_is_believed(silent: dict[str, Any], value: int, source: str) -> None:
    found = policy_in_force(Evidence(**(EVERYBODY | silent))).ib_timeout

    assert (found.value, found.source) == (value, source)


@pytest.mark.parametrize(
    "unread",
    [
        {"environment": None},
        {"conf_files": ()},
        {"conf_files": (ReadFile("/etc/nccl.conf", None),)},
        {"environment": {"NCCL_ENV_PLUGIN": "site"}},
    ],
)
def test_who_could_not_be_asked_makes_a_default_unsure(unread: dict[str, Any]) -> None:
    sure = policy_in_force(Evidence(**NOBODY, nccl="2.27.5")).ib_timeout
    unsure = policy_in_force(Evidence(**(NOBODY | unread), nccl="2.27.5")).ib_timeout

    assert sure == exactly(20, "version")
    assert unsure == Given(20, 18, 22, "version")


@pytest.mark.parametrize(
    ("written", "value", "remark"),
    [
        ("32", 32, "retry for ever"),
        ("0", 0, "retry for ever"),
        ("-1", -1, "retry for ever"),
        ("0x16", 22, None),
        ("22abc", 22, None),
        ("abc", 20, "is no number"),
    ],
)
def test_an_odd_timeout_is_told(written: str, value: int, remark: str | None) -> None:
    policy = policy_in_force(
        Evidence(environment={"NCCL_IB_TIMEOUT": written}, conf_files=NOBODY["conf_files"])
    )

    assert policy.ib_timeout.value == value
    assert [one for one in policy.remarks if remark and remark in one] == list(policy.remarks)
    assert bool(policy.remarks) == (remark is not None)


@pytest.mark.parametrize(("written", "low"), [("15", 7), ("8", 0), ("9", 1)])
def test_more_retries_than_the_field_holds_are_told(written: str, low: int) -> None:
    policy = policy_in_force(Evidence(environment={"NCCL_IB_RETRY_CNT": written}))

    assert policy.retry_cnt == Given(low, low, 7, "environment")
    assert f"{low} are in force" in policy.remarks[0]


def test_of_several_group_timeouts_the_shortest_fires_first() -> None:
    policy = policy_in_force(
        Evidence(
            told=(Setting("group_timeout_ms", "600000"),),
            log_timeouts_seconds=(100.0,),
            dump_timeouts_seconds=(5.0,),
        )
    )

    assert policy.watchdog_seconds == Given(100.0, 100.0, 600.0, "log")


@pytest.mark.parametrize(
    ("known", "value", "source"),
    [
        ({"dump_timeouts_seconds": (300.0,)}, 300.0, "dump"),
        ({"environment": {"DEEPSPEED_TIMEOUT": "30"}}, 1800.0, "environment"),
        ({"configuration": JobSettings(watchdog=parse_duration("20m"))}, 1200.0, "configuration"),
        ({"torch": "2.1.2"}, 1800.0, "version"),
        ({}, 600.0, "default"),
    ],
)
def test_the_watchdog_is_that_of_the_best_witness(
    known: dict[str, Any], value: float, source: str
) -> None:
    found = policy_in_force(Evidence(**known)).watchdog_seconds

    assert (found.value, found.source) == (value, source)


def test_no_error_handling_means_that_nothing_ends_a_hang() -> None:
    policy = policy_in_force(Evidence(environment={"NCCL_ASYNC_ERROR_HANDLING": "0"}))

    assert math.isinf(policy.watchdog_seconds.value)
    assert any("nothing ends" in one for one in policy.remarks)


def test_torchrun_has_its_own_error_handling() -> None:
    assert (
        policy_in_force(Evidence(environment={"TORCHELASTIC_RUN_ID": "x"})).error_handling.value
        == 1
    )
    assert policy_in_force(Evidence(environment={})).error_handling.value == 3


@pytest.mark.parametrize(
    ("known", "value"),
    [
        ({"environment": {"TORCH_NCCL_ENABLE_MONITORING": "0"}}, math.inf),
        ({"environment": {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "120"}}, 120),
        ({"torch": "2.3.1"}, 600),
        ({"torch": "2.9.1"}, 480),
        ({"torch": "2.1.2"}, math.inf),
        ({}, 480),
    ],
)
def test_the_heartbeat_is_by_setting_or_release(known: dict[str, Any], value: float) -> None:
    assert policy_in_force(Evidence(**known)).heartbeat_seconds.value == value


def test_what_does_not_fit_together_is_told() -> None:
    late = policy_in_force(Evidence(environment={"NCCL_IB_TIMEOUT": "25"}))
    silent = policy_in_force(Evidence(nccl="2.18.1"))

    assert "the watchdog (600 s) fires before the transport gives up (962 s)" in late.remarks
    assert any("hands no network error on" in one for one in silent.remarks)
    assert silent.coordinated == exactly(False, "version")


def test_a_policy_goes_into_the_inputs_but_for_options() -> None:
    policy = policy_in_force(Evidence(environment={"NCCL_IB_TIMEOUT": "22"}))
    inputs = Inputs(
        gpus=exactly(1024, "scheduler"),
        down_seconds=exactly(2.0, "measured"),
        retry_cnt=exactly(3, "option"),
    )

    found = policy.applied_to(inputs)

    assert found.ib_timeout == exactly(22, "environment")
    assert found.retry_cnt == exactly(3, "option")
    assert found.gpus == inputs.gpus


def test_the_file_named_by_the_job_is_instead_of_the_one_at_home() -> None:
    assert conf_files_of({}, "/home/a") == ("/home/a/.nccl.conf", "/etc/nccl.conf")
    assert conf_files_of({"NCCL_CONF_FILE": "/x"}, "/home/a") == ("/x", "/etc/nccl.conf")
    assert conf_files_of({}, None) == ("/etc/nccl.conf",)


def test_only_what_is_on_the_list_is_kept_of_an_environment() -> None:
    block = b"AWS_SECRET_ACCESS_KEY=x\0RANK=3\0NCCL_IB_TIMEOUT=22\0PATH=/RANK=4\0"

    assert allowed_of(block) == {"RANK": "3", "NCCL_IB_TIMEOUT": "22"}


@given(st.binary(max_size=500))
def test_any_environment_block_is_read(block: bytes) -> None:
    assert set(allowed_of(block)) <= ALLOWED


def test_a_conf_file_sets_each_name_once() -> None:
    text = "#NCCL_IB_TIMEOUT=9\nNCCL_IB_TIMEOUT=18\n\nNCCL_IB_TIMEOUT=22\nPASSWORD=x\nnonsense\n"

    assert conf_of(text) == {"NCCL_IB_TIMEOUT": "18"}


@pytest.mark.parametrize(
    ("written", "value"),
    [("22", 22), (" 22", 22), ("0x16", 22), ("026", 22), ("22.", 22), ("-1", -1), ("", None),
     ("x", None), ("9" * 30, None), ("0x", 0), ("08", 0)],
)  # fmt: skip
def test_numbers_are_read_as_c_does(written: str, value: int | None) -> None:
    assert c_integer(written) == value
