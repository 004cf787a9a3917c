"""FleetView: all that the nodes of a cluster told, and the incidents that it makes."""

from collections.abc import Iterable
from functools import partial

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet.aligned import AlignedOutages
from flapd.core.fleet.incident import fleet_incident_of
from flapd.core.fleet.memory import FleetMemory
from flapd.core.fleet.nodes import Nodes, NodeView
from flapd.core.fleet.scenes import Around
from flapd.core.fleet.stories import Stories
from flapd.core.fleet.story import FleetStory
from flapd.core.fleet.topology import Topology
from flapd.core.fleet.totals import CountedLosses, FleetTotals
from flapd.core.incident.telling import Telling, Told, is_withdrawn
from flapd.model.event import Outage
from flapd.model.fleet import Heartbeat, NodeEvent
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS

KEPT_NS = 24 * 3600 * SECOND_NS
"""So long what is over can still be told otherwise, and counts as what a port does anyway."""
MOST_THINGS = 500_000
"""Of more than that the oldest are forgotten sooner."""
_LOOK_EVERY_NS = 5 * SECOND_NS
"""At what goes on, when nothing new is heard of it."""
_FORGET_EVERY_NS = 600 * SECOND_NS
_FORGET_EVERY = MOST_THINGS // 10
"""Or after so many events."""


class FleetView:
    """Takes events in any order and number; what it tells in the end follows from their set.

    Nothing here is written down: after a restart the hub lets it hear again what its store
    holds of the last KEPT_NS, and gives it the incidents that were told (`restore`).
    """

    def __init__(
        self,
        cluster: str,
        job: JobSettings,
        cost: CostSettings,
        topology: Topology | None = None,
        totals: FleetTotals | None = None,
    ) -> None:
        self._cluster, self._job, self._cost = cluster, job, cost
        self._topology = topology or Topology()
        self.totals = totals or FleetTotals()
        self._counted = CountedLosses(self.totals)
        self._memory, self._nodes, self._stories = FleetMemory(), Nodes(), Stories()
        self._outages = AlignedOutages(self._memory.outages, self._nodes)
        self._told: dict[str, Told] = {}
        self._telling: Telling[FleetStory] = Telling(
            self._told, self._incident_of, self.totals.count
        )
        self._affected: set[str] = set()
        self._moved: dict[str, set[str]] = {}
        """By node, outages that are new, or dated anew."""
        self._looked_at_ns = 0
        self._forgot_at_ns = 0
        self._heard = 0
        """Events since then."""
        self._cutoff_ns = 0
        self._final_ns = 0
        """What began before is told otherwise no more."""

    def restore(
        self, told: Iterable[Incident], since_ns: int = 0, *, superseded: Iterable[Incident] = ()
    ) -> None:
        """Incidents of the fleet as they were told last, before anything is heard.

        What it is to hear again is of the time since `since_ns`: what began before stays as told.
        Those that others took in may come back, and go on with their revisions.
        """
        self._final_ns = since_ns
        hidden, shown = list(superseded), list(told)
        self._counted.restore([*hidden, *shown])
        for incident in shown:
            # What only its node could see is in no event that is kept.
            self._memory.take_finding(incident)
        self._told.update((one.id, self._as_told(one)) for one in shown)
        for incident in hidden:
            self._told[incident.id] = self._as_told(incident)
            self._told[incident.id].is_superseded = True

    def _as_told(self, incident: Incident) -> Told:
        return Told(
            incident,
            [*incident.symptoms, *incident.flaps],
            counted=self._counted.is_counted(incident.id),
            is_withdrawn=is_withdrawn(incident),
        )

    def hear(self, told: NodeEvent) -> None:
        """One event of a node; cheap: nothing is worked out before `look`."""
        self._nodes.note(told.node)
        if self._memory.is_forgotten(told.event, self._cutoff_ns):
            return
        self._heard += 1
        if isinstance(told.event, Outage):
            self._move(told.event)
        self._affected.update(self._memory.take(told.event))

    def beat(self, beat: Heartbeat, received_unix_ns: int) -> None:
        """A node lives; when it was received by the hub's clock."""
        for port in beat.ports:
            self._memory.note_port(beat.node, port.port, port.key)
        if self._nodes.beat(beat, received_unix_ns):
            self._affected |= self._memory.places_of(beat.node)
            for outage in self._memory.outages.at(beat.node):
                self._move(outage)

    def look(self, now_ns: int) -> list[Incident]:
        """New and revised incidents of the fleet, since the last look.

        `now_ns` is unix time: of the hub's clock where it keeps up with the stream, else when
        the last event heard was stored. Call it after each batch, and each second without one,
        in a burst seldom: what it costs grows with what is new, and with all that is told of
        the jobs which that is of.
        """
        self._share()
        if _is_past(self._looked_at_ns, _LOOK_EVERY_NS, now_ns):
            self._looked_at_ns = now_ns
            self._affected |= self._stories.open_places()
        if not self._affected:
            return []
        changed = self._stories.work_out(self._affected, self._around(now_ns))
        self._affected = set()
        told = self._telling.tell(self._stories.all, _Everything(), changed, (), self._final_ns)
        for incident in told:
            self._counted.take(incident)
        if self._heard > _FORGET_EVERY or _is_past(self._forgot_at_ns, _FORGET_EVERY_NS, now_ns):
            self._forget(now_ns)
        return told

    def left_out(self) -> list[tuple[str, Exception]]:
        """Jobs and nodes of which it could not be worked out what happened, since it was asked."""
        found, self._stories.left_out = self._stories.left_out, []
        return found

    def nodes(self, now_ns: int) -> tuple[NodeView, ...]:
        """All nodes that were ever heard of, by a heartbeat or an event."""
        return self._nodes.view(now_ns)

    def use_topology(self, topology: Topology) -> None:
        """For what is told from now on; what was told stays as it is."""
        self._topology = topology

    def shared_cause_of(self, outage_id: str) -> str | None:
        """What many ports went down with at once, in words; None: it went down for itself."""
        shared = self._stories.shared_of.get(outage_id)
        return None if shared is None else shared.words

    def _move(self, outage: Outage) -> None:
        known = self._memory.outages.items.get(outage.id, outage)
        for node in {outage.node, known.node}:
            self._outages.renew(node)
            self._moved.setdefault(node, set()).add(outage.id)

    def _share(self) -> None:
        if not self._moved:
            return
        for node, names in self._moved.items():
            for outage in self._outages.at(node):
                if outage.id in names:
                    self._stories.downs.put(outage)
        moved, self._moved = set().union(*self._moved.values()), {}
        # What is new is looked at anyway.
        for name in self._stories.share(self._topology) - moved:
            self._affected.update(self._memory.near(name))

    def _around(self, now_ns: int) -> Around:
        return Around(
            cluster=self._cluster,
            memory=self._memory,
            outages=self._outages,
            nodes=self._nodes,
            topology=self._topology,
            shared_of=self._stories.shared_of,
            job=self._job,
            cost=self._cost,
            now_ns=now_ns,
        )

    def _incident_of(self, story: FleetStory) -> Incident | None:
        if story.told is None:
            of_it = partial(fleet_incident_of, story, self._topology)
            story.told = self._stories.attempt(story.job_name, of_it)
        return story.told

    def _forget(self, now_ns: int) -> None:
        """Stories as a whole: what is left must tell the same as before."""
        self._forgot_at_ns, self._heard = now_ns, 0
        cutoff_ns = max(now_ns - KEPT_NS, self._memory.youngest_ns(MOST_THINGS))
        if cutoff_ns <= self._cutoff_ns:
            return
        self._cutoff_ns, self._final_ns = cutoff_ns, max(cutoff_ns, self._final_ns)
        stays = [one for one in self._stories.all if one.begin_ns >= cutoff_ns or _is_open(one)]
        kept = {name for one in stays for name in one.members}
        forgotten = self._memory.forget(cutoff_ns, kept)
        for name in forgotten:
            self._stories.downs.drop(name)
        if forgotten:
            self._outages.renew_all()
        self._stories.keep(stays)
        self._telling.forget(cutoff_ns)
        self._counted.forget(self._told)


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


def _is_open(story: FleetStory) -> bool:
    return story.told is not None and story.told.open


def _is_past(before_ns: int, every_ns: int, now_ns: int) -> bool:
    """Wall clocks are set back at times."""
    return not before_ns <= now_ns < before_ns + every_ns
