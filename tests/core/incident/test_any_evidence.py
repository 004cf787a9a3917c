"""What holds for any evidence."""

import math

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.incident.incidents import incidents_of
from flapd.core.incident.sayings import verdicts_in
from flapd.model.incident import Incident
from tests.core.incident.parts import evidence, ns
from tests.core.incident.sets import Item, before, sets

NOW = st.sampled_from([None, ns(800), ns(20_000)])


@given(sets(), NOW, st.data())
def test_the_order_of_evidence_changes_nothing(
    items: list[Item], now_ns: int | None, data: st.DataObject
) -> None:
    mixed = data.draw(st.permutations(items))

    assert incidents_of(evidence(*mixed, now_ns=now_ns)) == incidents_of(
        evidence(*items, now_ns=now_ns)
    )


@given(sets(), NOW)
def test_what_comes_again_or_was_said_otherwise_before_changes_nothing(
    items: list[Item], now_ns: int | None
) -> None:
    again = [*items, *items]
    older = map(before, items)

    assert incidents_of(evidence(*again, now_ns=now_ns)) == incidents_of(
        evidence(*older, *items, now_ns=now_ns)
    )


@given(sets(), NOW)
def test_probabilities_and_losses_are_what_they_say(items: list[Item], now_ns: int | None) -> None:
    for incident in incidents_of(evidence(*items, now_ns=now_ns)):
        _check(incident)


def _check(incident: Incident) -> None:
    assert sum(one.probability for one in incident.causes) <= 1 + 1e-9
    assert all(0 < one.probability <= 1 and 0 <= one.chance <= 1 for one in incident.causes)
    assert not incident.regimes or math.isclose(sum(incident.regimes.values()), 1)
    for spread in (incident.lost_seconds, incident.gpu_seconds, incident.cost):
        if spread is not None:
            assert 0 <= spread.low <= spread.likely <= spread.high
    if incident.gpu_seconds is not None and math.isfinite(incident.gpu_seconds.likely):
        charged = sum(one.likely for one in incident.flap_gpu_seconds.values())
        assert charged <= incident.gpu_seconds.likely * (1 + 1e-9)
    if incident.parts is not None and incident.lost_seconds is not None:
        assert math.isclose(incident.parts.lost, incident.lost_seconds.likely)
    assert incident.explanation


@given(sets(), NOW)
def test_each_symptom_is_told_in_one_incident(items: list[Item], now_ns: int | None) -> None:
    found = incidents_of(evidence(*items, now_ns=now_ns))
    told = [name for incident in found for name in incident.symptoms]

    assert len(told) == len(set(told))
    assert len({incident.id for incident in found}) == len(found)


@given(sets())
def test_an_incident_that_goes_on_has_no_end(items: list[Item]) -> None:
    for incident in incidents_of(evidence(*items, now_ns=ns(800))):
        assert (incident.end_unix_ns is None) is incident.open
        assert incident.open or (incident.end_unix_ns or 0) >= incident.begin_unix_ns


@given(sets(), NOW)
def test_an_account_says_its_verdict_and_no_other(items: list[Item], now_ns: int | None) -> None:
    for incident in incidents_of(evidence(*items, now_ns=now_ns)):
        assert verdicts_in(incident.explanation) == [incident.verdict]
        says_it_is = any("is the cause with" in one for one in incident.explanation)
        assert says_it_is <= (incident.verdict in ("caused", "likely"))
