"""Cast: who plays in the demo: one node and its agent, or a fleet with a hub that hears it."""

import time
from contextlib import ExitStack
from pathlib import Path

from flapd.model.times import SECOND_NS
from simulators.demo.child import free_port, scratch
from simulators.demo.service import Service
from simulators.demo.site import Site
from simulators.demo.stage import CHECKPOINT_EVERY, RESTART, Stage
from simulators.demo.story import NEIGHBOURS, NODE, WATCHDOG_SECONDS, fleet_story
from simulators.fabric.mount import fuse_missing
from simulators.fabric.truth import Truth
from simulators.job.record import Run

_PORT, _HUB_PORT = 19315, 19316
_BEGINS_AFTER_SECONDS, _FLEET_BEGINS_AFTER_SECONDS = 3.0, 10.0
"""Agents are there before the job is."""
_OF_THE_HUB = ("faults", "incidents")
"""Who sees all nodes tells these."""


class Cast:
    """All of it ends with the stack."""

    def __init__(self, stack: ExitStack, run: Run, server: str | None) -> None:
        self._stack, self._run, self._server = stack, run, server
        directory = stack.enter_context(scratch())
        self._site = None if server is None else Site(directory / "hub", free_port(_HUB_PORT, 0))
        self._stages = [self._stage(directory, node) for node in self._nodes()]

    def _nodes(self) -> tuple[int, ...]:
        return (NODE,) if self._site is None else (NODE, *NEIGHBOURS)

    def _stage(self, directory: Path, node: int) -> Stage:
        port = free_port(_PORT, 0) if node == NODE else free_port(0)
        nats = None if self._site is None else self._site.nats
        return Stage(directory / f"node{node}", port, node, nats)

    def begin(self) -> Truth:
        """Everybody is there; what befalls the node that is looked at."""
        enter, run = self._stack.enter_context, self._run
        wait = _BEGINS_AFTER_SECONDS if self._site is None else _FLEET_BEGINS_AFTER_SECONDS
        origin_ns = time.monotonic_ns() + round(wait * SECOND_NS)
        if self._site is not None and self._server is not None:
            enter(self._site.server(self._server))
            enter(self._site.others(fleet_story(run.spec.job), origin_ns, self._nodes()))
        truths = [enter(stage.fabric(run, origin_ns)) for stage in self._stages]
        for stage in self._stages:
            enter(stage.job(run, origin_ns))
        for service in self._services():
            enter(service.running())
        return truths[0]

    def _services(self) -> list[Service]:
        return [*self._stages, *([] if self._site is None else [self._site])]

    def look(self) -> None:
        for stage in self._stages:
            stage.show_ranks()

    def teller_of(self, what: str) -> Service:
        """Who tells of flaps and so on, with all that can be known of it."""
        return self._site if self._site is not None and what in _OF_THE_HUB else self._stages[0]

    def why(self, incident: str) -> str:
        """The command, and what it prints."""
        teller = self._services()[-1]
        where = f"--config {teller.config}" if self._site is None else f"--url {teller.url}"
        return f"$ flapd why {incident} {where}\n{teller.flapd('why', incident)}"

    def page(self) -> str:
        hub = "" if self._site is None else " of the fleet"
        return f"The on-call page{hub}: {self._services()[-1].url}/"

    def introduction(self) -> str:
        spec, software = self._run.spec, self._run.spec.software
        watchdog = f"{WATCHDOG_SECONDS:.0f} s"
        gpus = f"{spec.world_size:,} GPUs, {spec.ranks_per_node} a node"
        what = f"flapd on one simulated node of job {spec.job}: {gpus}."
        if self._site is not None:
            real = ", ".join(stage.name for stage in self._stages)
            what = (
                f"flapd on {spec.nodes} simulated nodes of job {spec.job}: {gpus}.\n"
                f"The real agent runs on {real}; what all others tell is simulated too."
            )
        lines = [
            what,
            f"Each GPU has a port of 400 Gb/s; PyTorch {software.torch}, NCCL {software.nccl}.",
            "All timeouts are short, so that nobody has to wait:",
            f"NCCL_IB_TIMEOUT={spec.ib_timeout} (gives up after 2 to 8 s), watchdog {watchdog};",
            f"the configuration says {RESTART} to restart, a checkpoint every {CHECKPOINT_EVERY}.",
        ]
        missing = fuse_missing()
        if missing is not None:
            lines.append(f"Simulating with plain files, since there is no FUSE: {missing}.")
        if missing is not None and "package" in missing:
            lines.append("`make system-packages` (needs root) would bring it.")
        return "\n".join(lines)

    def where_to_look(self) -> str:
        node = self._stages[0]
        lines = ["Look for yourself, in a browser and in another terminal:"]
        if self._site is not None:
            lines.append(f"  {self._site.url}/  the fleet")
            lines.append(f"  .venv/bin/flapd incidents --url {self._site.url}")
        lines += [
            f"  {node.url}/  {node.name}, whose links will flap",
            f"  .venv/bin/flapd watch --config {node.config}",
            f"  .venv/bin/flapd flaps --config {node.config}",
            f"  .venv/bin/flapd incidents --config {node.config}",
            f"  curl -s {node.url}/metrics | grep flapd_",
            "",
        ]
        return "\n".join(lines)
