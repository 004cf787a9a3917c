"""An advice on the screen: what was seen, what each policy makes of it, what to do."""

import math
from collections.abc import Iterator

from flapd.cli.advise_words import named
from flapd.cli.advised import Advised
from flapd.cli.output import Cell, Column, print_line, print_table
from flapd.cli.text import length
from flapd.core.cost.best_timeout import RETRIES, TIMEOUTS, Advice
from flapd.core.cost.durations import Durations, quantile
from flapd.core.cost.plan import Draining, PortPlan
from flapd.core.cost.price import money

_MOST_PORTS = 10
_STEPS = {"drain": "bold red", "wait": "yellow"}


def print_advice(found: Advised, currency: str) -> None:
    """One screen: the flaps, the policies, the reasons, the ports."""
    for sentence in _seen(found.outages, found.left_out):
        print_line(sentence, indent=2)
    print()
    print("Seconds lost per flap and GPU, by timeout and number of retries:")
    _print_policies(found.timeout)
    if found.draining is not None and found.draining.ports:
        print()
        price = found.inputs.price_per_gpu_hour.value
        _print_ports(found.draining, price, currency)
    print()
    for sentence in found.explanation:
        print_line(sentence, indent=2)


def _seen(outages: Durations, left_out: dict[str, int]) -> Iterator[str]:
    median, most = (quantile(outages.outages, share) for share in (0.5, 0.9))
    told = f"{len(outages.outages)} outages, down until usable"
    if median is not None and most is not None:
        told += (
            f": half of them up to {median:,.2f} s, nine in ten up to {most:,.2f} s, "
            f"the longest {outages.longest_seconds:,.2f} s"
        )
    yield f"{told}."
    if outages.not_ended:
        yield f"{outages.not_ended} of them lasted longer than was seen, and count as such."
    reasons = {
        "length known too vaguely": outages.vague,
        "older": outages.passed_over,
        **left_out,
    }
    missing = [f"{count} ({why})" for why, count in reasons.items() if count]
    if missing:
        yield f"Left out: {', '.join(missing)}."


def _print_policies(advice: Advice) -> None:
    columns = [
        Column("timeout", is_number=True),
        Column("a retry every", is_number=True),
        *(Column(str(retries), is_number=True, is_whole=True) for retries in RETRIES),
    ]
    print_table(columns, [_policy_row(advice, timeout) for timeout in TIMEOUTS])


def _policy_row(advice: Advice, timeout: int) -> list[Cell]:
    row = [one for one in advice.policies if one.ib_timeout == timeout]
    tick = row[-1].budget_seconds / row[-1].retry_cnt
    cells = [
        Cell(_seconds(one.expected_seconds), "bold green" if one == advice.best else "")
        for one in row
    ]
    return [Cell(str(timeout)), Cell(f"{tick:,.2f} s"), *cells]


def _seconds(value: float) -> str:
    return "endless" if math.isinf(value) else f"{value:,.2f}"


def _print_ports(draining: Draining, price: float, currency: str) -> None:
    columns = [
        Column("port"),
        Column("flaps", is_number=True),
        Column("an hour", is_number=True),
        Column("GPU-h a flap", is_number=True),
        Column(f"{currency} a day", is_number=True),
        Column("pays above", is_number=True),
        Column("after", is_number=True),
        Column("so", is_whole=True),
    ]
    rows = [_port_row(one, price) for one in draining.ports[:_MOST_PORTS]]
    print_table(columns, rows)
    more = len(draining.ports) - _MOST_PORTS
    if more > 0:
        print_line(f"and {more} more ports (--json has all).")


def _port_row(one: PortPlan, price: float) -> list[Cell]:
    even, after = one.break_even_per_hour, one.pays_after_seconds
    return [
        Cell(named(one)),
        Cell(str(one.flaps)),
        Cell(f"{one.per_hour:.4f}"),
        Cell(_seconds(one.gpu_seconds_per_flap / 3600)),
        Cell(_seconds(money(one.gpu_seconds_per_day, price))),
        Cell("never" if even is None else f"{even:,.4f} /h"),
        Cell("never" if after is None else length(after)),
        Cell(one.step, _STEPS.get(one.step, "")),
    ]
