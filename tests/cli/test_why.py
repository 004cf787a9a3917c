"""`flapd why`: which incident it tells, and what it says of it."""

import json
import time
from typing import Any

import pytest
from msgspec.structs import replace

from flapd.model.given import Given, exactly
from flapd.model.incident import Incident
from flapd.model.loss import Parts, Range
from flapd.model.times import SECOND_NS, rfc3339
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import port, view
from tests.store.jobs import cause, fault, incident, stall
from tests.store.outages import WALL_NS, outage, unix

PORT = (view(port(key="0x1/1")),)


def absorbed() -> tuple[Any, ...]:
    """A flap of 2 s that traffic waited out."""
    return (
        outage("flap-1", down=10, up=12),
        stall("stall-1", begin=10.2, end=14.6),
        incident(
            causes=(cause("flap-1"),),
            blind_to=("the other nodes of the job",),
            flap_gpu_seconds={"flap-1": Range(4403.2, 4505.6, 4608.0)},
        ),
    )


def flat(out: str) -> str:
    """Lines are broken where they end; what they say is not."""
    return " ".join(out.split())


def told(here: Here, capsys: pytest.CaptureFixture[str], *events: Any, words: Any = ()) -> str:
    with agent_at(here, (), PORT) as (agent, _url):
        agent.happens(*events)
        assert here.command("why", "--utc", *words) == 0
    return capsys.readouterr().out


def test_one_incident_is_told_on_one_screen(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(here, capsys, *absorbed())

    lines = out.splitlines()
    assert lines[0] == "incident-1: caused by mlx5_0/1, job 4711"
    assert max(map(len, lines)) <= WIDEST
    assert len(lines) <= 40
    assert "\x1b" not in out
    order = [
        "2023-11-14 22:13:30.000 ±0.000 mlx5_0/1 goes down",
        "2023-11-14 22:13:30.150 ±0.050 job 4711 traffic stands still on mlx5_0/1",
        "2023-11-14 22:13:32.000 ±0.000 mlx5_0/1 is back after 2.00 s",
        "2023-11-14 22:13:34.650 ±0.050 job 4711 traffic flows after 4.40 s",
        "Port mlx5_0/1 went down for 2 s and traffic of job 4711 stood still.",
        "mlx5_0/1 with 98.0 %; by accident (p0) 1.2 %; 0.10 s after its down",
        "NCCL_IB_TIMEOUT 20 (by its release); NCCL_IB_RETRY_CNT 7 (environment); watchdog 600 s",
        "absorbed 98.0 %, hidden 2.0 %",
        "4.4 s (4.3 to 4.5): 4.4 s standing still",
        "x 1,024 GPUs = 4,506 GPU-s (4,403 to 4,608) = 3.13 USD",
        "100% measured, 0% modelled, 0% assumed",
        "the other nodes of the job",
        "Leave the timeout as it is.",
    ]
    said = flat(out)
    at = [said.index(words) for words in order]
    assert at == sorted(at)


def test_a_death_is_told_with_its_first_error_and_what_followed(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    cause_of_it = cause(
        "flap-1",
        symptom="fault-1",
        lag_seconds=30.9,
        rho=1.028,
        budget_seconds=Range(30.06, 30.06, 137.4),
    )
    out = told(
        here,
        capsys,
        outage("flap-1", down=10, up=70, count=3, cause="subnet", reason="no SM"),
        fault("fault-1", at=40.9, kind="transport_error", status=12, hca="mlx5_0", primary=True),
        *(fault(f"fault-{n}", at=640, rank=n, ran_seconds=600.1) for n in range(2, 30)),
        fault("fault-x", at=None, kind="process_death", event="killed", repeats=8),
        incident(
            begin=10,
            end=700,
            regime="transport_abort",
            regimes={"transport_abort": 1.0},
            causes=(cause_of_it, cause("flap-2", port="mlx5_1/1", probability=0.00001)),
            symptoms=("fault-1", *(f"fault-{n}" for n in range(2, 30)), "fault-x"),
            lost_seconds=Range(181, 1245, float("inf")),
            parts=Parts(detect=30.0, propagation=15.0, restart=300.0, rework=900.0),
            assumed_share=0.97,
            policy={"watchdog_seconds": exactly(float("inf"), "environment")},
        ),
    )

    for said in (
        "goes down, 3 downs, subnet: no SM",
        "transport error, status 12, on mlx5_0",
        "first error",
        "1.03 x the retry budget of 30 s (30 to 137)",
        "mlx5_1/1 with under 0.01 %",
        "at a time that nobody knows: process death, killed, x 8",
        "more that follow from these",
        "1,245.0 s (181.0 to endless): 30.0 s until it was noticed + 15.0 s",
        "2% measured, 1% modelled, 97% assumed",
        "watchdog without end (environment)",
    ):
        assert said in flat(out)
    assert max(map(len, out.splitlines())) <= WIDEST
    assert len(out.splitlines()) <= 45


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("likely", "most likely caused by mlx5_0/1"),
        ("coincident", "mlx5_0/1 flapped beside it"),
        ("elsewhere", "the cause is elsewhere"),
        ("not_fabric", "it was not the fabric"),
        ("no_job", "no job used the port"),
        ("unknown", "the cause is not known"),
    ],
)
def test_the_verdict_is_the_first_thing_that_is_said(
    here: Here, capsys: pytest.CaptureFixture[str], verdict: Any, said: str
) -> None:
    out = told(here, capsys, incident(verdict=verdict, symptoms=()))

    assert said in out.splitlines()[0]
    assert "The evidence itself is not kept any more." in out


def test_what_is_not_known_is_said_to_be_not_known(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = incident(
        job=None,
        verdict="unknown",
        causes=(),
        symptoms=(),
        regime=None,
        regimes={},
        lost_seconds=None,
        parts=None,
        assumed_share=None,
        gpu_seconds=None,
        cost=None,
        policy={},
        explanation=(),
        advice=(),
        flap_gpu_seconds={},
    )

    out = told(here, capsys, empty)

    assert "lost         not known" in out
    assert "USD" not in out


def test_words_of_tenants_steer_no_terminal(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b]0;owned\x07\n"
    out = told(
        here,
        capsys,
        fault("fault-1", host=hostile, rank=None, op=hostile, event=hostile),
        incident(
            job=hostile,
            symptoms=("fault-1",),
            explanation=(hostile,),
            advice=(hostile,),
            blind_to=(hostile,),
            policy={"ib_timeout": Given(hostile, 1, 2, "log")},
        ),
    )

    assert "\x1b" not in out
    assert "\x07" not in out


def test_json_is_the_agents_own(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(told(here, capsys, *absorbed(), words=["--json"]))

    assert (answer["id"], answer["flaps"][0]["id"]) == ("incident-1", "flap-1")


def lately(incident_id: str, age_seconds: float, **changes: Any) -> Incident:
    begin_ns = time.time_ns() - round(age_seconds * SECOND_NS)
    fields = {"begin_unix_ns": begin_ns, "end_unix_ns": begin_ns + 5 * SECOND_NS}
    return replace(incident(incident_id), **{**fields, **changes})


def chosen(here: Here, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """The incident that is told, and what is noted beside it."""
    events = (
        lately("i-old", 90_000),
        lately("i-day", 7200),
        lately("i-near", 7100, job="4712"),
        lately("i-new", 60),
        lately("i-late", 3000, supersedes=("i-early",)),
    )
    with agent_at(here, (), PORT) as (agent, _url):
        agent.happens(incident("i-early"), *events)
        assert here.command("why", "--utc", *words) == 0
    out, err = capsys.readouterr()
    return out.partition(":")[0], err


def test_without_an_argument_it_is_the_latest(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chosen(here, capsys) == ("i-new", "")
    assert chosen(here, capsys, "--job", "4712") == ("i-near", "")


def test_an_id_names_it_also_where_it_became_another(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chosen(here, capsys, "i-day") == ("i-day", "")
    found, noted = chosen(here, capsys, "i-early")
    assert (found, "part of i-late" in noted) == ("i-late", True)


def test_a_time_chooses_what_was_then_and_tells_what_else_there_is(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    found, noted = chosen(here, capsys, rfc3339(time.time_ns() - 7198 * SECOND_NS))
    assert found == "i-day"
    assert "looking at" in noted
    assert "nearest" not in noted


def test_an_age_chooses_the_nearest_and_says_that_it_is_only_near(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    found, noted = chosen(here, capsys, "7130s")
    assert found == "i-near"
    assert "none at that time" in noted
    assert "i-day" in noted


def test_a_time_without_an_incident_is_a_negative_answer_that_tells_of_flaps(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent(),), PORT):
        assert here.command("why", "--utc", "1m") == 1
        assert here.command("why", "--utc", "3d") == 1
        assert here.command("why") == 1
        assert here.command("why", "--job", "7") == 1

    out = capsys.readouterr().out
    assert "1 outage there: see `flapd flaps`" in out
    assert "nor was a port down" in out
    assert "No incident of job 7" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-id"], "there is no incident no-such-id"),
        (["2026-11-30"], "RFC 3339"),
        (["some-id", "--job", "7"], "an ID names one incident"),
    ],
)
def test_wrong_use_is_told(
    here: Here, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with agent_at(here):
        assert here.command("why", *words) == 2

    assert said in capsys.readouterr().err


def test_a_time_of_day_is_the_last_one_in_the_local_zone(
    here: Here, capsys: pytest.CaptureFixture[str], zone_of_new_york: None
) -> None:
    """The history of this incident is of 2023: near it is only what began then."""
    at = unix(10) - WALL_NS
    assert at > 0
    with agent_at(here, (), PORT) as (agent, _url):
        agent.happens(*absorbed())
        assert here.command("why", "2023-11-14T17:13:31-05:00") == 0
        assert here.command("why", "03:12") == 1

    out, err = capsys.readouterr()
    assert "looking at 2023-11-14 17:13:31 UTC-05:00" in err
    assert "2023-11-14 17:13:30.000 ±0.000" in out
    assert "In words, with times in UTC:" in out
    assert "03:12 UTC-0" in err
