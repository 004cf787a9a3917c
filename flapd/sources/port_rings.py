"""PortRings: what is remembered of the sweeps of one port, a ring for each tier.

Statistics of its netdev belong to the rare tier, but come when they are told: in its ring they
have rows of their own, with what is read of the link on any sweep.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from flapd.core.fabric.catalogue import Tier, driver_of
from flapd.core.fabric.parse import value_names
from flapd.model.observation import READ_STATISTICS
from flapd.model.port import Port
from flapd.sources.ethtool_statistics import STATISTICS_OF, value_name
from flapd.sources.plan import TIERS, Plan, remembered
from flapd.sources.sample_draft import Sweep
from flapd.store.ring import RingWriter, ring_path

_FEWEST_ROWS = 2
_ROWS_WITH_STATISTICS = 3
"""Two of them for each of the others: when they are told wanders against the sweeps."""


class RingSettings(msgspec.Struct, frozen=True):
    """What the rings of all ports have in common."""

    directory: Path
    boot: str
    keep_ns: int
    intervals_ns: Mapping[Tier, int]
    statistics: bool
    """Of netdevs, they are asked for."""

    def rows(self, tier: Tier) -> int:
        return max(_FEWEST_ROWS, self.keep_ns // self.intervals_ns[tier])


class PortRings:
    """A tier whose ring cannot be made is not remembered, and is told of."""

    def __init__(self, settings: RingSettings, port: Port, plan: Plan) -> None:
        self._settings = settings
        self._port = port
        self._columns = {tier: _columns(plan, tier) for tier in TIERS}
        self._statistics = _statistics_of(port) if settings.statistics else ()
        of_rare = {value for name in plan.tiers["rare"] for value in value_names(name)}
        self._beside_statistics = {*self._columns["rare"], *self._statistics} - of_rare
        self._statistics_due_ns = 0
        self._rings: dict[Tier, RingWriter] = {}
        for tier in TIERS:
            try:
                self._rings[tier] = self._made(tier)
            except OSError as error:  # a full or missing tmpfs must not end the watching
                print(f"no ring for {port.name} {tier}: {error}", file=sys.stderr)  # noqa: T201

    @property
    def missing(self) -> int:
        return len(TIERS) - len(self._rings)

    def remember(self, tier: Tier, sweep: Sweep, values: Mapping[str, int]) -> None:
        """`values` are all that are known; what was not read in this sweep is known from before."""
        if tier in self._rings:
            row = values if tier != "rare" else self._without_statistics(values)
            reads = sweep.reads & ~READ_STATISTICS
            self._rings[tier].append(sweep.before_ns, sweep.after_ns, reads, row)
        if sweep.reads & READ_STATISTICS and "rare" in self._rings:
            self._remember_statistics(sweep, values)

    def close(self) -> None:
        for ring in self._rings.values():
            ring.close()

    def _remember_statistics(self, sweep: Sweep, values: Mapping[str, int]) -> None:
        """Where they are asked for more often, no more of them than there is room for."""
        if sweep.before_ns < self._statistics_due_ns:
            return
        self._statistics_due_ns = sweep.before_ns + self._settings.intervals_ns["rare"] // 2
        read = {name: value for name, value in values.items() if name in self._beside_statistics}
        self._rings["rare"].append(sweep.before_ns, sweep.after_ns, sweep.reads, read)

    def _without_statistics(self, values: Mapping[str, int]) -> Mapping[str, int]:
        return {name: values[name] for name in values if name not in self._statistics}

    def _made(self, tier: Tier) -> RingWriter:
        settings, port = self._settings, self._port
        apart = self._statistics if tier == "rare" else ()
        return RingWriter(
            ring_path(settings.directory, port.key, tier),
            key=port.key,
            counted_by=port.counted_by,
            tier=tier,
            columns=[*self._columns[tier], *apart],
            rows=settings.rows(tier) * (_ROWS_WITH_STATISTICS if apart else 1),
            boot=settings.boot,
        )


def _columns(plan: Plan, tier: Tier) -> list[str]:
    return [value for name in remembered(plan, tier) for value in value_names(name)]


def _statistics_of(port: Port) -> tuple[str, ...]:
    """Those that its driver may tell of its netdev."""
    names = STATISTICS_OF.get(driver_of(port.driver).name, ()) if port.netdev else ()
    return tuple(map(value_name, names))
