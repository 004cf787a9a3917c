"""`flapd healthcheck`: what a scheduler asks before it puts a job here."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from flapd.cli.answers import FlapAnswer, PortAnswer, PortsAnswer
from flapd.cli.client import ask
from flapd.cli.drain import drain_verdict
from flapd.cli.flaps import fetch_flaps
from flapd.cli.output import decoded, give_up_stdout, print_json
from flapd.cli.target import Target, UrlTarget
from flapd.cli.text import printable, unix_ns
from flapd.cli.verdict import LOOK_BACK_SECONDS, Facts, Flap, Limits, Port, Verdict, judge
from flapd.cli.within import within
from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS

WITHIN_SECONDS = 5.0
MOST_FLAPS = 1000
"""Of a node that flaps more often the newest tell enough, and comparing all would take too long."""


class Answer(msgspec.Struct, frozen=True):
    """What --json prints."""

    healthy: bool
    verdict: str
    reason: str


def healthcheck(
    targets: Callable[[], Sequence[Target]],
    max_flaps: int,
    window_seconds: float,
    unknown: str,
    as_json: bool,
    node: Callable[[], str],
) -> int:
    """0 healthy, 1 not; nothing that goes wrong with asking is a no, unless `unknown` says so.

    A hub is asked of `node`.
    """
    limits = Limits(max_flaps, round(window_seconds * SECOND_NS))

    def find_out() -> Verdict:
        asked = targets()
        of_hub = None
        if isinstance(asked[0], UrlTarget):
            of_hub = drain_verdict(asked, node(), max_flaps, window_seconds)
        return judge(_facts(asked, limits), limits) if of_hub is None else of_hub

    verdict = _surely(lambda: within(WITHIN_SECONDS, find_out))
    healthy = (unknown if verdict.health == "unknown" else verdict.health) == "healthy"
    try:
        _say(verdict, healthy, as_json)
    except OSError:  # a full disk behind stdout is no answer either
        give_up_stdout()
    return 0 if healthy else 1


def _say(verdict: Verdict, healthy: bool, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.json.encode(Answer(healthy, verdict.health, verdict.reason)))
    else:
        print(f"{_word(verdict, healthy)}: {printable(verdict.reason)}")
    sys.stdout.flush()


def _word(verdict: Verdict, healthy: bool) -> str:
    if verdict.health != "unknown":
        return verdict.health
    return f"{'healthy' if healthy else 'unhealthy'}, as nothing is known"


def _surely(find_out: Callable[[], Verdict]) -> Verdict:
    try:
        return find_out()
    except FlapdError as error:
        return Verdict("unknown", str(error))
    except Exception as error:  # noqa: BLE001 - a fault of flapd must not drain a cluster
        return Verdict("unknown", f"flapd failed: {type(error).__name__}: {error}")


def _facts(targets: Sequence[Target], limits: Limits) -> Facts:
    """FlapdError where ports or flaps are not told: what all ports had together excuses each."""
    now_ns = time.time_ns()
    listed = decoded(ask(targets, "/api/v1/ports?limit=1000"), PortsAnswer)
    items = listed.items
    repaired = {item.port: unix_ns(item.repaired.time) for item in items if item.repaired}
    return Facts(
        now_ns=now_ns,
        ports=[_port(item) for item in items],
        flaps=_flaps(targets, now_ns, limits, repaired),
        expected=listed.expected,
        scouted=listed.found is not None and listed.next is None,
        blind_devices=listed.blind,
        booted=any(item.grace for item in items),
        blind=_not_ready(targets),
    )


def _not_ready(targets: Sequence[Target]) -> list[str]:
    try:
        ask(targets, "/readyz")
    except FlapdError as error:
        return [str(error)]
    return []


def _flaps(
    targets: Sequence[Target], now_ns: int, limits: Limits, repaired: Mapping[str, int]
) -> list[Flap]:
    since_ns = now_ns - max(limits.window_ns, LOOK_BACK_SECONDS * SECOND_NS)
    filters = {"since": f"{max(0, since_ns) // SECOND_NS}"}
    items = fetch_flaps(targets, filters, MOST_FLAPS).items
    return [_flap(item, repaired.get(item.port, 0)) for item in items]


def _flap(item: FlapAnswer, repaired_ns: int) -> Flap:
    """What went before a repair does not speak against the port any more."""
    earliest_ns = unix_ns(item.down.earliest)
    is_its_own = item.cause in COUNTED_CAUSES and not item.grace
    return Flap(
        port=item.port,
        earliest_ns=earliest_ns,
        latest_ns=unix_ns(item.down.latest),
        end_ns=None if item.up is None else unix_ns(item.up.latest),
        downs=1 if item.count is None else item.count,
        counts=is_its_own and earliest_ns >= repaired_ns,
    )


def _port(item: PortAnswer) -> Port:
    return Port(
        name=item.port,
        present=item.watched,
        missing=bool(item.ever_up) and not item.watched,
        up=item.up,
        flapping=bool(item.flapping),
        maintenance=bool(item.maintenance),
        readable=item.readable,
    )
