"""Account: a story as a good colleague would tell it, in order of time."""

from collections import Counter
from collections.abc import Iterator, Sequence

from flapd.core.incident.blame import CAUSED, LEAST_DEED, MOST_CHANCE, Blame, Share, time_ns
from flapd.core.incident.closing import is_open
from flapd.core.incident.evidence import begin_ns, missing_seconds
from flapd.core.incident.repeat_words import repeats_sentence
from flapd.core.incident.story import Story
from flapd.core.incident.windows import lag_of
from flapd.core.incident.words import clock, day_and_clock, listed, percent, plural, seconds
from flapd.core.job.queue_pairs import FORM as QUEUE_PAIRS
from flapd.model.event import Outage
from flapd.model.fault import Fault, FaultKind
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

_WIDE_NS = 2 * SECOND_NS
"""An edge known less sharply than that is told as a span."""
_SAID: dict[FaultKind, str] = {
    "transport_error": "the transport gave up",
    "fatal_event": "a device reported a fatal event",
    "counter": "a port counted retries that were used up",
    "nccl_error": "NCCL reported an error to the framework",
    "watchdog_timeout": "the watchdog ended a collective that did not finish",
    "heartbeat": "the heartbeat monitor found the watchdog stuck",
    "process_death": "a rank process ended",
}
_CAUSES = {
    "link": "",
    "unknown": "",
    "subnet": " (the link stayed, the subnet manager took it down)",
    "admin": " (somebody set it down on this node)",
    "boot": " (the node was starting)",
    "driver_reload": " (its driver was loaded again)",
    "removed": " (its device went away)",
    "maintenance": " (in planned work)",
}


def events_in_order(story: Story) -> list[str]:
    """What was seen, one sentence a thing, each with its time."""
    told = [(begin_ns(bunch[0]), _outages(bunch, story)) for bunch in _at_once(story.outages)]
    told += [(time_ns(one.symptom), _symptom(one.symptom, story)) for one in story.blames]
    told.sort()
    sentences = [f"{clock(ns)}: {text}." for ns, text in told]
    if told:
        sentences[0] = f"{day_and_clock(told[0][0])}: {told[0][1]}."
    return [*sentences, *_followers(story)]


def _at_once(outages: Sequence[Outage]) -> list[list[Outage]]:
    """Those that began within a second are told together, so that a switch is one sentence."""
    found: list[list[Outage]] = []
    for one in outages:
        if found and begin_ns(one) - begin_ns(found[-1][0]) <= SECOND_NS:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _outages(outages: list[Outage], story: Story) -> str:
    first = outages[0]
    if len(outages) == 1:
        return (
            f"{_port(first, story)} went down{_times(first)}{_CAUSES[first.cause]}"
            f"{_uncertainty(first)}{_until(first, story)}{_reason(first)}"
        )
    ports = listed([_port(one, story) for one in outages])
    missing = [missing_seconds(one, story.scene.until_ns).value for one in outages]
    if any(one.up is None for one in outages):
        back = _not_back(story)
    elif seconds(min(missing)) == seconds(max(missing)):
        back = f" and were back after {seconds(max(missing))}"
    else:
        back = f" and were back after {seconds(min(missing))} to {seconds(max(missing))}"
    return f"{ports} went down together{back}"


def _times(outage: Outage) -> str:
    times = f" {outage.count} times" if outage.count > 1 else ""
    return f"{times} or more" if outage.count_at_least else times


def _port(outage: Outage, story: Story) -> str:
    mine = outage.node == story.scene.evidence.node
    return outage.port if mine else f"{outage.port} of {outage.node}"


def _uncertainty(outage: Outage) -> str:
    down = outage.down
    if down.latest_ns - down.earliest_ns <= _WIDE_NS:
        return ""
    return f", some time before {clock(down.latest_unix_ns)}"


def _until(outage: Outage, story: Story) -> str:
    missing = missing_seconds(outage, story.scene.until_ns)
    if outage.status == "lost":
        return "; when it came back is not known"
    if outage.up is None:
        return _not_back(story)
    return f" and was back after {seconds(missing.value)}"


def _reason(outage: Outage) -> str:
    return f'; its module or driver says "{outage.reason}"' if outage.reason else ""


def _not_back(story: Story) -> str:
    return " and has not come back yet" if is_open(story) else " and did not come back"


def _symptom(symptom: Fault | Stall, story: Story) -> str:
    if isinstance(symptom, Fault):
        return _fault(symptom, story)
    ports = plural(len(symptom.ports), "port")
    stopped = f"traffic stopped on all {ports} that carry the job{_and_others(symptom, story)}"
    if symptom.seconds is None:
        return f"{stopped}{_not_back(story)}"
    if story.scene.was_cut_off(symptom):
        return f"{stopped}, until the job was over {seconds(symptom.seconds)} later"
    usual = symptom.expected_seconds
    besides = f", where {seconds(usual)} are usual" if usual else ""
    return f"{stopped}, for {seconds(symptom.seconds)}{besides}"


def _and_others(symptom: Fault | Stall, story: Story) -> str:
    """Of a fleet: where that was, and on how many nodes more."""
    if not story.scene.evidence.is_fleet:
        return ""
    node = _where(symptom)
    others = len({_where(one) for one in story.scene.alike.get(symptom.id, ())} - {node})
    return f" on {node}" + (f" and on {plural(others, 'other node')}" if others else "")


def _where(symptom: Fault | Stall) -> str:
    """Who reads a shared log is not who wrote it."""
    return (isinstance(symptom, Fault) and symptom.host) or symptom.node


def _fault(fault: Fault, story: Story) -> str:
    where = f" on rank {fault.rank}" if fault.rank is not None else ""
    where += _and_others(fault, story)
    if not where and fault.host is not None:
        where = f" on {fault.host}"
    details = [
        f"status {fault.status}" if fault.kind == "transport_error" and fault.status else "",
        f"{fault.op} {fault.seq}" if fault.op and fault.seq is not None else fault.op or "",
        f"after {seconds(fault.ran_seconds)}" if fault.ran_seconds is not None else "",
        f"on {fault.hca}" if fault.hca else "",
    ]
    said = ", ".join(filter(None, details))
    return f"{_SAID.get(fault.kind, fault.kind)}{where}" + (f" ({said})" if said else "")


def _followers(story: Story) -> Iterator[str]:
    events = [one for one in story.followers if one.kind == "port_event"]
    if events:
        count = sum(one.repeats for one in events)
        said = sorted({one.event or "a port event" for one in events})
        yield f"The ranks saw it as well: {listed(said)}, printed {plural(count, 'time')}."
    pairs = [one for one in story.followers if one.form == QUEUE_PAIRS]
    for one in pairs:
        named = f"{plural(one.repeats, 'queue pair')} of {one.hca}/{one.port}"
        yield f"In error at the next look: {named}."
    others = [
        one
        for one in story.followers
        if one.kind not in ("port_event", "kernel") and one.form != QUEUE_PAIRS
    ]
    if others:
        kinds = Counter(one.kind.replace("_", " ") for one in others)
        said = [f"{count} {kind}" for kind, count in sorted(kinds.items())]
        yield f"{plural(len(others), 'message')} followed from that: {listed(said)}."


def reasons_of(blame: Blame, story: Story) -> Iterator[str]:
    """How sure it is that a flap did it, and why not more."""
    if blame.another:
        yield f"There is another cause: {blame.another}."
    elif blame.weak and not blame.is_blamed:
        yield f"Something else explains it: {blame.weak}."
    top = blame.top
    if top is None:
        return
    yield _figures(top, blame, story)
    repeats = None if is_open(story) else repeats_sentence(top, story)
    if repeats is not None:
        yield repeats
    if blame.probability < CAUSED or top.deed <= LEAST_DEED:
        yield from _doubts(top, blame, story)
    elif top.chance > MOST_CHANCE:
        yield (
            "These ports flap so often that one may well stand there by accident: that is too "
            "much to call it the cause for sure."
        )
    rivals = [
        one for one in blame.shares if one.together != top.together and one.probability >= 0.01
    ]
    if rivals:
        said = [f"{_port(one.outage, story)} with {percent(one.probability)}" for one in rivals]
        yield f"It may as well have been {listed(said)}."


def _figures(top: Share, blame: Blame, story: Story) -> str:
    is_alone = top.probability == top.together
    which = "it" if is_alone else "one of those that were down together"
    verb = "is" if blame.is_blamed else "would be"
    return (
        f"{_what(blame.symptom)} came {_when(top, blame, story)}: "
        f"{which} {verb} the cause with a probability of {percent(top.together)}; that a flap "
        f"stands there by accident has one of {percent(top.chance)}."
    )


def _when(top: Share, blame: Blame, story: Story) -> str:
    port, lag = _port(top.outage, story), top.lag_seconds
    if top.start_ns is not None:
        since = seconds((time_ns(blame.symptom) - top.start_ns) / SECOND_NS)
        been_down = seconds(sum(lag_of(top.start_ns, top.outage)) / 2)
        return f"{since} after the job was started, when {port} had been down for {been_down}"
    rho = rho_of(top, blame, story)
    ratio = f", {rho:.2f} times the retry budget" if rho is not None else ""
    how = f"{seconds(lag)} after" if lag >= 0 else f"{seconds(-lag)} before"
    return f"{how} the down of {port}{ratio}"


def rho_of(share: Share, blame: Blame, story: Story) -> float | None:
    """Lag over the budget, of an error of the transport that waited for the port to come back."""
    symptom, nominal = blame.symptom, story.scene.terms.budget.nominal
    if isinstance(symptom, Stall) or symptom.kind != "transport_error":
        return None
    if share.start_ns is not None:
        return None
    return share.lag_seconds / nominal if 0 < nominal < float("inf") else None


def _what(symptom: Fault | Stall) -> str:
    if isinstance(symptom, Stall):
        return "The stall"
    names = {"watchdog_timeout": "The watchdog", "transport_error": "The error"}
    return names.get(symptom.kind, "It")


def _doubts(top: Share, blame: Blame, story: Story) -> Iterator[str]:
    missing = missing_seconds(top.outage, story.scene.until_ns).value
    budget = story.scene.terms.budget
    if top.start_ns is not None:
        yield (
            "NCCL passes over a port that is not active when a job is started: some jobs run "
            "without it, and others fail for other reasons."
        )
    elif missing < budget.low:
        yield (
            f"A flap of {seconds(missing)} is waited out: the transport retries for "
            f"{seconds(budget.low)} at least. It should have cost a short stall, and no more."
        )
    elif isinstance(blame.symptom, Stall):
        yield "Stalls of that length come without a flap as well, or this one does not fit it."
    else:
        yield "Other causes are as likely at that distance in time."
