"""Link: what a sample, or a message of the kernel, says of the link of its port."""

from collections.abc import Mapping
from typing import NamedTuple

from flapd.core.fabric.carrier import Carrier, counts_in
from flapd.core.fabric.catalogue import (
    ACTIVE_STATES,
    CARRIER_DOWNS,
    FLAGS,
    PHYSICAL_DISABLED,
    PHYSICAL_LINK_UP,
    PHYSICAL_STATE,
    RATE_MBPS,
    STATE,
    state_is_constant,
)
from flapd.core.fabric.reading import LinkReading
from flapd.core.fabric.record import PortRecord
from flapd.model.event import Layer
from flapd.model.observation import READ_RATE, READ_STATE, LinkHint, Sample

_IFF_UP = 1
_RTNETLINK = "rtnetlink"


class Heard(NamedTuple):
    """A message, and whether it tells of counts that nobody knew."""

    reading: LinkReading
    is_news: bool


class Link:
    """Reads what concerns one port; its record holds what stands now."""

    def __init__(self, record: PortRecord) -> None:
        self.carrier = Carrier(record.carrier)
        self._record = record

    def reading(self, sample: Sample, witness: int | None) -> LinkReading:
        """Of a sample that is merged into the record; `witness` is what counts downs, if read."""
        values, port = self._record.values, self._record.port
        up: bool | None = None
        layer: Layer | None = "physical"
        if port.witness == CARRIER_DOWNS and witness is not None:
            self.carrier.learn(sample, values)
            up = self.carrier.is_on(counts_in(values))
        if up is None and not self.carrier.is_told and sample.reads & READ_STATE:
            up, layer = self._state(values)
        if up and port.link_layer != "InfiniBand" and self._is_switched_off():
            up = False  # some drivers keep the carrier of an interface that is off
        is_up = self._record.book.up if up is None else up
        is_rated = is_up and sample.reads & READ_RATE and not self.carrier.is_behind(sample)
        return LinkReading(
            sample.before_ns,
            sample.after_ns,
            witness,
            up,
            layer,
            admin=up is False and self._is_switched_off(),
            first=sample.first,
            rate_mbps=values.get(RATE_MBPS) if is_rated else None,
        )

    def late_reading(self, sample: Sample) -> LinkReading:
        """Only what the sample itself says: what it left out was said relative to another."""
        up, layer = None, None
        if STATE in sample.values and not self.carrier.is_told:
            up, layer = self._state(sample.values)
        witness = sample.values.get(self._record.port.witness or "")
        return LinkReading(sample.before_ns, sample.after_ns, witness, up, layer)

    def overtaken_reading(self, sample: Sample) -> LinkReading | None:
        """Of one that is merged, whose counts were lower than a message has told since."""
        counts = self.carrier.overtaken(sample, self._record.values)
        if counts is None:
            return None
        up = self.carrier.is_on(counts)
        return LinkReading(sample.before_ns, sample.after_ns, counts.downs, up, "physical")

    def hear(self, hint: LinkHint) -> Heard | None:
        """None where it says nothing of what is counted here, or nothing that can be placed."""
        if self._record.port.witness != CARRIER_DOWNS or self._record.unregistered:
            return None
        placed = self.carrier.place(hint, self._record.values)
        if placed is None:
            return None
        up, is_off = self.carrier.is_on(placed.counts), not hint.flags & _IFF_UP
        if up and (is_off or self._is_switched_off()):
            up = None  # what the flags say is not ordered by the counts
        reading = LinkReading(
            hint.asked_ns or 0,
            hint.monotonic_ns,
            placed.counts.downs,
            up,
            "physical",
            admin=up is False and is_off,
            told_by=_RTNETLINK,
        )
        return Heard(reading, placed.is_news)

    def _is_switched_off(self) -> bool:
        """By the interface's flag; on InfiniBand by the physical state.

        On RoCE that one is Disabled whenever the carrier is off (
        drivers/infiniband/hw/mlx5/main.c, mlx5_query_port_roce).
        """
        values = self._record.values
        if self._record.port.link_layer == "InfiniBand":
            return values.get(PHYSICAL_STATE) == PHYSICAL_DISABLED
        flags = values.get(FLAGS)
        return flags is not None and not flags & _IFF_UP

    def _state(self, values: Mapping[str, int]) -> tuple[bool | None, Layer | None]:
        state, physical = values.get(STATE), values.get(PHYSICAL_STATE)
        if state is None or state_is_constant(self._record.port.driver):
            return None, None
        if physical is None:
            return state in ACTIVE_STATES, None
        return state in ACTIVE_STATES, "logical" if physical == PHYSICAL_LINK_UP else "physical"
