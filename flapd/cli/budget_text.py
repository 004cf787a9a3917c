"""Where the time of a step goes, on the screen."""

from collections.abc import Iterator

from flapd.cli.output import Cell, Column, print_line, print_table
from flapd.cli.text import length
from flapd.core.cost.step import FLOPS_PER_PARAMETER_AND_TOKEN, Gap, Spread, StepTimes, Training
from flapd.core.cost.step_fabric import Fabric, StepAnswer, Tellers

_MOST_RANKS = 8
_MOST_NODES = 8


def print_budget(found: StepAnswer, training: Training, mfu: float) -> None:
    """The projection, the gap, what the links have to do with it, what cannot be seen."""
    rows = [*_projection(found, training, mfu)]
    if found.gap is not None:
        rows += _gap(found, found.gap)
    columns = (Column("each step"), Column("", is_number=True, is_whole=True), Column(""))
    print_table(columns, [[Cell(cell) for cell in row] for row in rows])
    print()
    for sentence in _account(found, training.gpus):
        print_line(sentence, indent=2)
    if found.step_times is not None:
        print()
        _print_times(found.step_times)
    print()
    print("What no fabric monitor sees, and the one number that would tell:")
    print_table(
        (Column("may be"), Column("look at"), Column("and read it so")),
        [[Cell(one.what), Cell(one.metric), Cell(one.reading)] for one in found.unseen],
    )


def _projection(
    found: StepAnswer, training: Training, mfu: float
) -> Iterator[tuple[str, str, str]]:
    work = (
        f"{FLOPS_PER_PARAMETER_AND_TOKEN} x {training.parameters:.4g} x "
        f"{training.tokens_per_step:,.0f} / "
        f"({training.gpus:,} x {training.peak_flops:.4g} x {mfu:g})"
    )
    yield "projected", _seconds(found.projected_seconds), work
    if found.measured_seconds is not None:
        yield "measured", _seconds(found.measured_seconds), ""


def _gap(found: StepAnswer, gap: Gap) -> Iterator[tuple[str, str, str]]:
    speed = f"{gap.speed_share:.1%} of the projected speed, MFU {gap.achieved_mfu:.3f}"
    yield "gap", _seconds(gap.gap_seconds), speed
    if found.fabric is None:
        return
    yield "  of it flaps", _seconds(gap.fabric_seconds), _how_known(found)
    for name, seconds in sorted((found.stalls_seconds or {}).items()):
        if name != "local_link":
            yield f"  stalls: {name.replace('_', ' ')}", _seconds(seconds), "as measured in traffic"
    if found.retransmissions_seconds is not None:
        most = f"at most {found.retransmissions_seconds:,.6f} s"
        yield "  retransmissions", most, _resent(found.fabric)
    elif found.fabric.tellers is not None:
        yield "  retransmissions", "not seen", "a hub hears of none: ask each node's agent"
    yield "  unexplained", _seconds(gap.unexplained_seconds), f"by {_whose(found.fabric)} links"


def _how_known(found: StepAnswer) -> str:
    if found.stalls_seconds is not None:
        return "as measured in traffic"
    span = found.flaps_seconds
    return "" if span is None else f"by the model, {span.low:,.6f} to {span.high:,.6f} s"


def _resent(fabric: Fabric) -> str:
    if fabric.resent is None:
        return ""
    told = ", ".join(f"{count:,} {cause}" for cause, count in fabric.resent.by_cause.items())
    return f"{told.replace('_', ' ')} in the last {length(fabric.resent.over_seconds)}"


def _account(found: StepAnswer, gpus: int) -> Iterator[str]:
    fabric, gap = found.fabric, found.gap
    if gap is None:
        yield "No step time is known: give --measured S, or --log FILE of the training."
    elif gap.gap_seconds <= 0:
        yield "It is as fast as projected, or faster: there is no gap to explain."
    elif fabric is not None:
        yield _verdict(gap, fabric)
    if fabric is None:
        yield "What flaps and stalls took is not known: no agent was asked."
        return
    waited = fabric.waited
    yield (
        f"In {length(fabric.over_seconds)} {_whose(fabric)} ports flapped {waited.flaps:,}"
        f"{'+' if waited.more else ''} times: {waited.seconds.likely:,.1f} s of standing still "
        f"({waited.seconds.low:,.1f} to {waited.seconds.high:,.1f} s)."
    )
    if waited.deaths:
        yield (
            f"Of these {waited.deaths:,} outlasted the retry budget: that ends a job rather than "
            "lengthen its steps, and is not in these figures (`flapd cost`)."
        )
    if fabric.stalled_more:
        yield "There were more stalls in that time than were looked at: they took at least this."
    if fabric.tellers is not None:
        yield from _not_seen(fabric.tellers, gpus)


def _not_seen(tellers: Tellers, gpus: int) -> Iterator[str]:
    """What a hub cannot speak of."""
    if tellers.gpus < gpus:
        yield (
            f"{tellers.gpus:,} of {gpus:,} GPUs are on nodes that told of job {tellers.job}: "
            "of the links of the others nothing is known."
        )
    if tellers.silent:
        named = ", ".join(tellers.silent[:_MOST_NODES])
        more = len(tellers.silent) - _MOST_NODES
        others = f" and {more} more" if more > 0 else ""
        yield f"Nothing is heard now of {named}{others}: what flapped there since is not in it."


def _whose(fabric: Fabric) -> str:
    if fabric.tellers is None:
        return "this node's"
    nodes = fabric.tellers.nodes
    return f"{nodes:,} nodes'" if nodes > 1 else "one node's"


def _verdict(gap: Gap, fabric: Fabric) -> str:
    share = gap.fabric_seconds / gap.gap_seconds
    here = (
        "this node"
        if fabric.tellers is None
        else f"the nodes that tell of job {fabric.tellers.job}"
    )
    if share < 0.1:
        return f"Not a link of {here}: flaps there explain {share:.1%} of the gap."
    if share > 0.9:
        return f"The links of {here} explain the gap: {min(share, 1.0):.0%} of it."
    return f"The links of {here} explain {share:.0%} of the gap; the rest is elsewhere."


def _print_times(times: StepTimes) -> None:
    rows = [("all", times.all), *_slowest(times)]
    print_table(
        (
            Column("step times by rank"),
            Column("steps", is_number=True),
            *(Column(name, is_number=True) for name in ("lowest", "median", "highest")),
        ),
        [
            [
                Cell(name),
                Cell(f"{one.steps:,}"),
                *(Cell(_seconds(seconds)) for seconds in (one.min, one.median, one.max)),
            ]
            for name, one in rows
        ],
    )
    if not times.by_rank:
        print_line("One rank prints them: of the spread over ranks nothing is known.")


def _slowest(times: StepTimes) -> list[tuple[str, Spread]]:
    ordered = sorted(times.by_rank.items(), key=lambda one: -one[1].median)
    return ordered[:_MOST_RANKS]


def _seconds(value: float) -> str:
    return f"{value:,.6f} s"
