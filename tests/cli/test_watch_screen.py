"""The screen of `flapd watch`, of any size and whatever an agent tells."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flapd.cli.answers import (
    FlapAnswer,
    History,
    Interval,
    Jobs,
    PortAnswer,
    PortsAnswer,
    RunningJob,
    Seconds,
    Status,
)
from flapd.cli.findings import findings
from flapd.cli.job_answers import IncidentAnswer
from flapd.cli.look import Now
from flapd.cli.watch_feed import Seen, View
from flapd.cli.watch_fit import Line, Section, fitted
from flapd.cli.watch_screen import Size, screen

AT = 1_900_000_000_000_000_000
LARGE = Size(100, 60)


def down_at(second: int) -> Interval:
    return Interval(f"2030-03-17T17:46:{second:02d}.000000Z", f"2030-03-17T17:46:{second:02d}.1Z")


def flap(second: int = 1, **changes: Any) -> FlapAnswer:
    fields: dict[str, Any] = {
        "id": "f1",
        "port": "mlx5_0/1",
        "down": down_at(second),
        "status": "closed",
        "cause": "link",
        "count": 1,
        "down_seconds": Seconds(0.4, 0.6),
    }
    return FlapAnswer(**{**fields, **changes})


def port(name: str = "mlx5_0/1", **changes: Any) -> PortAnswer:
    fields: dict[str, Any] = {
        "port": name,
        "watched": True,
        "ever_up": True,
        "readable": True,
        "up": True,
        "flaps_24h": 0,
    }
    return PortAnswer(**{**fields, **changes})


def seen(
    ports: list[PortAnswer],
    flaps: list[FlapAnswer] | None = None,
    jobs: Jobs | None = None,
    **changes: Any,
) -> Seen:
    told = Status(
        version="1", node="node17", uptime_seconds=5.0, history=History("h", True), jobs=jobs
    )
    listed = PortsAnswer(ports, expected=len(ports), found=len(ports))
    now = Now(b"", told, listed, findings(listed, told, []))
    fields: dict[str, Any] = {
        "flaps": [] if flaps is None else flaps,
        "incidents": [],
        "not_told": [],
        "is_more": False,
        "unix_ns": AT,
    }
    return Seen(now, **{**fields, **changes})


def text_of(view: View, size: Size = LARGE) -> list[str]:
    return [line.text for line in screen(view, size, AT, utc=True)]


def test_the_newest_of_flaps_and_incidents_comes_first() -> None:
    incident = IncidentAnswer(
        id="i", verdict="not_fabric", job="4711", begin="2030-03-17T17:46:02.000000Z"
    )
    lines = text_of(View(seen([port()], [flap(3, count=2), flap(1)], incidents=[incident])))

    told = [line for line in lines if "03-17 17:46" in line]
    assert told == [
        "  03-17 17:46:03 mlx5_0/1 was down for 0.40\N{EN DASH}0.60 s, 2 downs, link",
        "  03-17 17:46:02 job 4711: it was not the fabric",
        "  03-17 17:46:01 mlx5_0/1 was down for 0.40\N{EN DASH}0.60 s, link",
    ]


def test_an_outage_whose_end_is_not_known_is_not_called_over() -> None:
    lost = flap(status="lost", down_seconds=Seconds())
    text = "\n".join(text_of(View(seen([port()], [flap(status="open"), lost]))))

    assert "mlx5_0/1 went down and is still down, link" in text
    assert "mlx5_0/1 went down; its end is not known, link" in text


def test_what_is_not_told_is_not_nothing() -> None:
    text = "\n".join(
        text_of(View(seen([port()], incidents=None, flaps=None, not_told=["no history"])))
    )
    untold = View(seen([port()])._replace(flaps=None, incidents=None, not_told=["no history"]))

    assert "no flap, incidents are not told" in text
    assert "flaps are not told, incidents are not told" in "\n".join(text_of(untold))
    assert "cannot be seen: 1" in text
    assert "no history" in text


def test_what_was_left_out_is_said() -> None:
    assert any(
        "and more: see `flapd flaps`" in line
        for line in text_of(View(seen([port()], [flap()], is_more=True)))
    )


def test_a_port_is_up_only_where_that_is_known() -> None:
    ports = [
        port("a/1"),
        port("b/1", up=None),
        port("c/1", readable=False),
        port("d/1", up=False),
        port("e/1", flapping=True),
        port("f/1", watched=False, ever_up=False),
    ]
    lines = text_of(View(seen(ports)))
    states = {line.split()[0]: line[19:30].strip() for line in lines if "/1" in line[:8]}
    rows = lines[next(n for n, line in enumerate(lines) if line.startswith("ports:")) + 1 :]

    assert [line[19:30].strip() for line in rows[:5]] == [
        "up",
        "not known",
        "not read",
        "DOWN",
        "flapping",
    ]
    assert "f/1" not in states


def test_while_nobody_answers_nothing_is_claimed_of_now() -> None:
    view = View(seen([port()]), False, "no agent answers: tried x", AT + 5_000_000_000)
    lines = text_of(view)

    assert lines[0].startswith("NOT KNOWN: no answer since 17:46:45 UTC")
    assert lines[1] == "no agent answers: tried x"
    assert lines[2] == "What follows was so at 17:46:40 UTC: node17: all is well"


def test_how_news_comes_is_told() -> None:
    assert text_of(View(seen([port()])))[0].endswith("live")
    assert text_of(View(seen([port()]), is_live=False))[0].endswith("asked every 2 s")


def test_an_answer_that_is_late_is_not_called_live() -> None:
    view = View(seen([port()], unix_ns=AT - 12_000_000_000))

    assert text_of(view)[0].endswith("AS OF 12 S AGO")


def test_text_from_elsewhere_steers_no_terminal() -> None:
    job = RunningJob(job="\x1b[2J\n\x07", blind_to=["\x1b]0;x\x07"])
    view = View(seen([port()], [flap(reason="\x1b[31m\r\n")], Jobs([job])), False, "\x1b[2J", AT)

    assert all(line.isprintable() for line in text_of(view))


@given(
    columns=st.integers(1, 130),
    lines=st.integers(1, 60),
    flaps=st.integers(0, 30),
    down=st.integers(0, 12),
    gone=st.sampled_from([None, "no agent answers: tried this and that and many other places"]),
)
def test_it_fits_any_terminal_and_its_first_line_tells_the_most(
    columns: int, lines: int, flaps: int, down: int, gone: str | None
) -> None:
    ports = [port(f"mlx5_{number}/1", up=number >= down) for number in range(16)]
    told = View(seen(ports, [flap(at) for at in range(flaps)]), gone is None, gone, AT)
    shown = text_of(told, Size(columns, lines))

    assert len(shown) <= lines
    assert ("NOT KNOWN" if gone else "wrong" if down else "all is well") in shown[0]
    if lines > 12 and down and not gone:
        assert shown[1] == f"wrong now: {down}"


@given(
    wanted=st.lists(
        st.integers(0, 12).flatmap(lambda n: st.lists(st.integers(1, 3), max_size=n)), max_size=6
    ),
    rows=st.integers(-2, 40),
)
def test_sections_are_cut_between_entries_and_each_says_how_many_are_missing(
    wanted: list[list[int]], rows: int
) -> None:
    sections = [
        Section(f"s{at}", [[Line(f"{at}.{n}")] * size for n, size in enumerate(sizes)])
        for at, sizes in enumerate(wanted)
    ]
    shown = [line.text for line in fitted(sections, rows)]

    assert len(shown) <= max(rows, 0)
    if sum(section.rows() for section in sections) <= rows:
        assert len(shown) == sum(section.rows() for section in sections)
    for at, sizes in enumerate(wanted):
        whole = {n for n, size in enumerate(sizes) if shown.count(f"{at}.{n}") == size}
        assert (
            whole
            == set(range(len(whole)))
            == {int(text.partition(".")[2]) for text in shown if text.startswith(f"{at}.")}
        )
    titles = [text for text in shown if text.startswith("s")]
    assert titles == [f"s{at}" for at in range(len(titles))]
    assert len(titles) == min(len(sections), max(rows, 0))
