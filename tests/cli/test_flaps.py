"""`flapd flaps`: what it prints of the history, page by page."""

import json

import pytest

from flapd.model.event import After
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import view
from tests.store.outages import outage


def test_flaps_are_a_table_that_fits(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    outages = (
        recent("closed"),
        recent("open", up=None, status="open", count=250, count_at_least=True),
        recent("lost", up=None, status="lost", port="rocep139s0f0/1", seen="while_away"),
    )

    with agent_at(here, outages):
        assert here.command("flaps") == 0

    out, err = capsys.readouterr()
    assert err == ""
    assert "0.40\N{EN DASH}0.70 s" in out
    assert "±0.05" in out
    assert "still down" in out
    assert " 250+ " in out
    assert "end unknown" in out
    assert "while away" in out
    assert max(map(len, out.splitlines())) <= WIDEST
    assert len(out.splitlines()) == 7
    assert "\x1b" not in out


def test_an_empty_history_says_so(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here):
        assert here.command("flaps") == 0

    assert capsys.readouterr().out == "No flaps: no outage matches.\n"


def test_each_flap_has_the_id_that_tells_more_of_it(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    flap_id = "flap-0123456789abcdef"

    with agent_at(here, (recent(flap_id),)):
        assert here.command("flaps") == 0
        assert flap_id in capsys.readouterr().out.split()
        assert here.command("flaps", flap_id) == 0

    assert capsys.readouterr().out.startswith(f"{flap_id}: mlx5_0/1, flap, closed\n")


def test_a_port_that_had_no_flaps_and_one_that_there_is_not_are_told_apart(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent(port="mlx5_7/1"),), (view(),)):
        assert here.command("flaps", "--port", "mlx5_0/1") == 0
        assert here.command("flaps", "--port", "mlx5_7/1") == 0  # gone, and still in the history
        capsys.readouterr()
        assert here.command("flaps", "--port", "nosuch/1") == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err == "flapd: --port nosuch/1: there is no such port; known are: mlx5_0/1\n"


def test_filters_reach_the_agent(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    outages = (recent("a"), recent("b", port="mlx5_1/1"), recent("c", cause="subnet"))

    with agent_at(here, outages):
        assert here.command("flaps", "--port", "mlx5_0/1", "--cause", "link", "--json") == 0

    assert [item["id"] for item in json.loads(capsys.readouterr().out)["items"]] == ["a"]


def test_the_last_day_is_shown_unless_asked_otherwise(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (outage("of 2023"),)):
        assert here.command("flaps") == 0
        assert here.command("flaps", "--since", "2023-11-14T00:00:00Z", "--utc") == 0

    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("No flaps")
    assert "2023-11-14 22:13:30.000" in out[2]


def test_that_there_is_more_is_told_beside_the_table(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent("a"), recent("b"))):
        assert here.command("flaps", "--limit", "1") == 0

    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert "--limit" in err


@pytest.mark.parametrize(
    "words", [["--since", "yesterday"], ["--cause", "me"], ["--min-down", "x"], ["--node", "n2"]]
)
def test_a_wrong_filter_is_wrong_input(
    here: Here, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with agent_at(here):
        assert here.command("flaps", *words) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"flapd: {words[0]}: ")
    assert len(err.splitlines()) == 1


def test_pages_are_followed_until_there_are_no_more(
    here: Here, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flapd.cli.pages.LARGEST_PAGE", 3)
    outages = tuple(recent(f"f{number}") for number in range(8))

    with agent_at(here, outages):
        assert here.command("flaps", "--json") == 0
        assert here.command("flaps", "--json", "--limit", "7") == 0

    captured = capsys.readouterr()
    whole, _, part = captured.out.partition("\n}\n")
    listed = json.loads(whole + "}")
    cut = json.loads(part)
    assert sorted(item["id"] for item in listed["items"]) == [outage.id for outage in outages]
    assert listed["next"] is None
    assert [item["id"] for item in cut["items"]] == [item["id"] for item in listed["items"]][:7]
    assert cut["next"] is not None
    assert "the newest 7" in captured.err


def test_what_is_known_of_a_flap_is_told_with_it(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    flap = recent(
        member="enp1s0f0np0",
        kind="drop",
        cause="driver_reload",
        after=After(200_000, downgraded=True),
        reason="module unplugged",
        grace=True,
    )

    with agent_at(here, (flap,)):
        assert here.command("flaps") == 0

    out = capsys.readouterr().out
    for word in ("enp1s0f0np0", "drop", "driver", "reload", "200 Gb/s", "slower", "unplugged"):
        assert word in out
    assert max(map(len, out.splitlines())) <= WIDEST


def test_no_room_is_taken_by_rates_that_nobody_knows(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent(),)):
        assert here.command("flaps") == 0

    out = capsys.readouterr().out
    assert "rate after" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_times_are_local_and_name_their_zone(
    here: Here, capsys: pytest.CaptureFixture[str], zone_of_new_york: None
) -> None:
    winter = outage("winter", down=0, up=2)

    with agent_at(here, (winter,)):
        assert here.command("flaps", "--since", "2023-11-14T00:00:00Z") == 0

    out = capsys.readouterr().out
    assert "down (UTC-05:00)" in out
    assert "2023-11-14 17:13:20.000" in out


def test_where_summer_and_winter_mix_each_time_names_its_zone(
    here: Here, capsys: pytest.CaptureFixture[str], zone_of_new_york: None
) -> None:
    half_a_year = 182 * 86_400
    winter = outage("winter", down=0, up=2)
    summer = outage("summer", down=half_a_year, up=half_a_year + 2)

    with agent_at(here, (winter, summer)):
        assert here.command("flaps", "--since", "2023-11-14T00:00:00Z") == 0

    out = capsys.readouterr().out
    assert "down (local time)" in out
    assert "17:13:20.000 ±0.000 UTC-05:00" in out
    assert "18:13:20.000 ±0.000 UTC-04:00" in out
    assert max(map(len, out.splitlines())) <= WIDEST
