"""Counter metrics: what the ports count, under the names of the catalogue."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    UnknownMetricFamily,
)

from flapd.core.fabric.catalogue import (
    NOT_A_COUNTER,
    RETRANSMISSION_CAUSES,
    Counter,
    all_counters,
    counter_of,
    short_name,
)
from flapd.core.fabric.view import PortView
from flapd.serve.labelled import Labelled, Labels, filled, labels_of
from flapd.serve.names import counter_names
from flapd.serve.settings import CounterChoice

_UNKNOWN_FROM = ("counters/", "hw_counters/")


class _Value(NamedTuple):
    """One counter of one port that could be read."""

    name: str
    counter: Counter | None
    value: int


class _Port(NamedTuple):
    """One port, and what was read of its counters."""

    labels: Labels
    names: dict[str, str]
    """File -> what people call it."""
    values: list[_Value]

    def labels_with(self, name: str) -> Labels:
        return self.labels | {"counter": self.names.get(name, short_name(name))}


def counter_families(views: Iterable[PortView], choice: CounterChoice) -> Iterator[Metric]:
    """Families of what the ports count; some may have no sample."""
    ports = [_port(view) for view in views]
    chosen = [port._replace(values=_chosen(port, choice)) for port in ports]
    yield _retransmissions(ports)
    yield from _known(chosen)
    yield _unknown(chosen)
    yield _saturated(chosen)


def _port(view: PortView) -> _Port:
    values = [
        _Value(name, counter_of(view.port.driver, name), value)
        for name, value in view.values.items()
        if name not in NOT_A_COUNTER
    ]
    return _Port(labels_of(view), counter_names(view), values)


def _chosen(port: _Port, choice: CounterChoice) -> list[_Value]:
    return [read for read in port.values if _is_chosen(read, choice)]


def _is_chosen(read: _Value, choice: CounterChoice) -> bool:
    """What is not known may be an error."""
    counter = read.counter
    if choice == "all":
        return True
    if choice == "errors":
        return counter is None or counter.klass == "error"
    names = (read.name, short_name(read.name), counter.metric if counter else "")
    return any(fnmatchcase(name, pattern) for name in names for pattern in choice)


def _known(ports: Iterable[_Port]) -> Iterator[Metric]:
    families: dict[str, Labelled] = {}
    for port in ports:
        told = set()
        for _, counter, value in port.values:
            if counter is None or counter.metric in told:
                continue
            told.add(counter.metric)
            if counter.metric not in families:
                families[counter.metric] = Labelled(_family(counter))
            families[counter.metric].add(port.labels, value * counter.scale)
    for metric in _FILES:
        if metric in families:
            yield families[metric].family


def _family(counter: Counter) -> Metric:
    kind = CounterMetricFamily if counter.kind == "counter" else GaugeMetricFamily
    files = " or ".join(_FILES[counter.metric])
    return kind(f"flapd_port_{counter.metric}", f"{files} of the port.")


def _files() -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for counter in all_counters():
        known = files.setdefault(counter.metric, [])
        if counter.name not in known:
            known.append(counter.name)
    return files


_FILES = _files()
"""Metric -> the files that drivers tell it in."""


def _unknown(ports: Iterable[_Port]) -> Metric:
    return filled(
        UnknownMetricFamily(
            "flapd_port_driver_counter",
            "What the driver counts and flapd knows nothing of.",
        ),
        (
            (port.labels_with(name), value)
            for port in ports
            for name, counter, value in port.values
            if counter is None and name.startswith(_UNKNOWN_FROM)
        ),
    )


def _saturated(ports: Iterable[_Port]) -> Metric:
    return filled(
        GaugeMetricFamily(
            "flapd_port_counter_saturated",
            "1 where the counter stands at its stop and counts no further.",
        ),
        (
            (port.labels_with(name), value >= counter.stop)
            for port in ports
            for name, counter, value in port.values
            if counter is not None and counter.stop is not None
        ),
    )


def _retransmissions(ports: Iterable[_Port]) -> Metric:
    """Of causes that the driver counts: the others are not known, and not 0."""
    family = Labelled(
        CounterMetricFamily(
            "flapd_port_retransmissions",
            "Times the port sent again or waited to, by the driver's reason for it.",
        )
    )
    for port in ports:
        counts: dict[str, int] = {}
        for _, counter, value in port.values:
            if counter is not None and counter.meaning in RETRANSMISSION_CAUSES:
                counts[counter.meaning] = counts.get(counter.meaning, 0) + value
        for cause in RETRANSMISSION_CAUSES:
            if cause in counts:
                family.add(port.labels | {"cause": cause}, counts[cause])
    return family.family
