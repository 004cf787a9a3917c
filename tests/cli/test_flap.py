"""`flapd flaps ID`: one outage, and what the samples around it show."""

import json

import pytest

from flapd.cli.answers import BlackBox
from flapd.cli.flap import MOST_CHANGES, Change, changes
from flapd.model.event import After
from flapd.model.times import SECOND_NS
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.store.kept import kept
from tests.store.outages import outage
from tests.store.rings import every, fill


@pytest.fixture
def sampled(here: Here) -> Here:
    """A node that has kept samples around f1, in which all columns move once a minute."""
    with kept(here.directory) as whole:
        minute = 60 * SECOND_NS
        fill(whole.ring, every(1, 10, 200), value=lambda ns: 4 if ns < 2 * minute else 1)
        whole.history.commit([outage("f1", down=105, up=107)], {})
        whole.look(200)
    return here


def test_an_outage_is_told_with_what_changed_around_it(
    sampled: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(sampled):
        assert sampled.command("flaps", "f1", "--utc") == 0

    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("f1: mlx5_0/1, flap, closed\n")
    assert ["down", "2023-11-14", "22:15:05.000", "±0.000", "UTC"] in lines
    assert ["up", "2023-11-14", "22:15:07.000", "±0.000", "UTC"] in lines
    assert "70 samples around it; --json has all" in out
    assert ["2023-11-14", "22:15:20.000", "link_downed", "4", "1"] in lines
    assert ["2023-11-14", "22:15:20.000", "state", "ACTIVE", "DOWN"] in lines
    assert max(map(len, out.splitlines())) <= WIDEST


def test_its_json_has_all_samples(sampled: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(sampled):
        assert sampled.command("flaps", "f1", "--json") == 0

    assert len(json.loads(capsys.readouterr().out)["black_box_data"]["rows"]) == 70


def test_what_is_known_of_it_is_told_and_that_no_samples_are_kept(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    flap = recent(
        up=None,
        status="lost",
        member="enp1s0f0np0",
        after=After(200_000, downgraded=True),
        cause="driver_reload",
        reason="module unplugged",
        grace=True,
        count=250,
        count_at_least=True,
    )

    with agent_at(here, (flap,)):
        assert here.command("flaps", "f1") == 0

    out = capsys.readouterr().out
    for words in (
        *("lost", "enp1s0f0np0", "200 Gb/s, slower", "driver reload, boot: module unplugged"),
        *("250+", "end unknown", "link_downed", "No samples around it are kept."),
    ):
        assert words in out


def test_an_outage_that_there_is_not_is_wrong_input(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here):
        assert here.command("flaps", "flap/../nosuch") == 2

    assert capsys.readouterr().err == "flapd: there is no flap flap/../nosuch\n"


def test_an_id_goes_without_what_narrows_down(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.command("flaps", "f1", "--since", "1h") == 2
    assert "an ID names one outage" in capsys.readouterr().err


def test_what_moves_all_the_time_is_named_once(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept(here.directory) as whole:
        fill(whole.ring, every(1, 10, 200))
        whole.history.commit([outage("f1", down=105, up=107)], {})
        whole.look(200)

    with agent_at(here):
        assert here.command("flaps", "f1") == 0

    out = capsys.readouterr().out
    assert "moves all the time: link_downed, port_xmit_data, state" in out
    assert out.count("link_downed") == 2  # the other is the evidence
    assert MOST_CHANGES < 70


def test_a_sample_without_a_column_changes_nothing_of_it() -> None:
    box = BlackBox(["time", "a", "b"], [["1", 5, None], ["2", None, 7], ["3", 6, 7]])

    assert changes(box) == {"a": [Change("3", "a", 5, 6)], "b": []}
