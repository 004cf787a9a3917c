"""Labelled: metric families that are filled with labels made once a port."""

from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from flapd.core.fabric.view import PortView

Labels = dict[str, str]


class Labelled:
    def __init__(self, family: Metric) -> None:
        self.family = family
        self._name = family.name + ("_total" if family.type == "counter" else "")

    def add(self, labels: Labels, value: float) -> None:
        self.family.samples.append(Sample(self._name, labels, value))


def filled(family: Metric, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """The family with these samples."""
    labelled = Labelled(family)
    for labels, value in samples:
        labelled.add(labels, value)
    return family


def labels_of(view: PortView) -> Labels:
    return {"device": view.port.device, "port": str(view.port.number)}
