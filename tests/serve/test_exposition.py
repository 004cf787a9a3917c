"""What prometheus_client would write, letter by letter."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.samples import Sample

from flapd.serve.exposition import encode

KINDS = (CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, UnknownMetricFamily)
NAMES = st.sampled_from(["device", "port", "le", "counter", "reason_2"])
SUFFIX = {"counter": "_total", "histogram": "_bucket"}


class Collector:
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


@st.composite
def families(draw: st.DrawFn) -> Metric:
    family: Metric = draw(st.sampled_from(KINDS))("flapd_thing", draw(st.text()))
    name = family.name + SUFFIX.get(family.type, "")
    labelled = st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"])))
    values = st.floats() | st.integers(0, 2**64) | st.booleans()
    for labels, value in draw(st.lists(st.tuples(labelled, values), max_size=4)):
        family.samples.append(Sample(name, labels, value))
    return family


@pytest.mark.parametrize(
    ("generate", "is_openmetrics"),
    [(exposition.generate_latest, False), (openmetrics.generate_latest, True)],
)
def test_it_is_as_the_library_writes_it(
    generate: Callable[[Collector], bytes], is_openmetrics: bool
) -> None:
    @given(st.lists(families(), max_size=4))
    @settings(max_examples=40, deadline=None)
    def same(told: list[Metric]) -> None:
        assert encode(told, openmetrics=is_openmetrics) == generate(Collector(told))

    same()
