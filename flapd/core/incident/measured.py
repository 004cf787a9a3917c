"""Measured: a stall of which it is known what brought it and when its path was back."""

from flapd.core.cost.calibration import Ends, Measured
from flapd.core.cost.inputs import Inputs
from flapd.core.incident.story import Story
from flapd.core.incident.verdict import resumed, verdict_of
from flapd.core.spans import overlap
from flapd.model.event import Outage
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS


def measured(story: Story) -> Measured | None:
    """Only where one link that went down and came up once stopped traffic in full flow.

    What went on later for another reason would tell of a timer that is none.
    """
    inputs, stall, outage = story.scene.terms.inputs, _stall(story), _outage(story)
    if stall is None or outage is None or outage.up is None or not _is_sure(inputs):
        return None
    began = _began(stall, outage)
    path_back = _since(began, (outage.up.earliest_unix_ns, outage.up.latest_unix_ns))
    end_ns = stall.end_unix_ns or 0
    resumed_in = _since(began, (end_ns, end_ns + stall.resolution_ns))
    if resumed_in[1] < path_back[0]:
        return None
    return Measured(
        stall=stall.id,
        flap=outage.id,
        port=outage.key,
        at_unix_ns=stall.begin_unix_ns,
        ib_timeout=inputs.ib_timeout.value,
        retry_cnt=inputs.retry_cnt.value,
        path_back=path_back,
        resumed=resumed_in,
    )


def _is_sure(inputs: Inputs) -> bool:
    """Which timers were at work."""
    known = (inputs.ib_timeout, inputs.retry_cnt, inputs.schedule)
    return inputs.schedule.value == "fixed" and all(one.low == one.high for one in known)


def _stall(story: Story) -> Stall | None:
    """The only one, in full flow; ended, and by no death."""
    if len(story.stalls) != 1 or story.errors or not resumed(story):
        return None
    (stall,) = story.stalls
    is_cut = stall.stall_class == "local_link" and stall.expected_seconds == 0
    return stall if is_cut and verdict_of(story) == "caused" else None


def _outage(story: Story) -> Outage | None:
    """The only one of the job's ports then; no burst."""
    if len(story.outages) != 1 or not story.stalls:
        return None
    (outage,) = story.outages
    stall = story.stalls[0]
    around = (stall.begin_unix_ns - stall.resolution_ns, stall.end_unix_ns or 0)
    others = [one for one in story.scene.outages if one.id != outage.id and _meets(one, around)]
    is_plain = outage.count == 1 and not outage.count_at_least and outage.status == "closed"
    return outage if is_plain and outage.node == stall.node and not others else None


def _meets(outage: Outage, span: tuple[int, int]) -> bool:
    until_ns = span[1] if outage.up is None else outage.up.latest_unix_ns
    return overlap((outage.down.earliest_unix_ns, until_ns), span)


def _began(stall: Stall, outage: Outage) -> tuple[int, int]:
    """When what was not acknowledged was sent: with the down, and while traffic stopped."""
    first_ns = max(stall.begin_unix_ns - stall.resolution_ns, outage.down.earliest_unix_ns)
    last_ns = min(stall.begin_unix_ns + stall.resolution_ns, outage.down.latest_unix_ns)
    return min(first_ns, last_ns), max(first_ns, last_ns)


def _since(began: tuple[int, int], at: tuple[int, int]) -> Ends:
    return max(0, at[0] - began[1]) / SECOND_NS, max(0, at[1] - began[0]) / SECOND_NS
