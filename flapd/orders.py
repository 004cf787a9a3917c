"""Orders: what a configuration means for the processes that read, and for the engine."""

from collections.abc import Mapping

from flapd.config import Config
from flapd.model.observation import Expectations
from flapd.sources.job_reader_link import ReaderOrders
from flapd.sources.sampler_link import Orders
from flapd.sources.settings import PortsSettings

_MBPS_A_GBPS = 1000


def sampler_orders(config: Config, boot: str, silent: Mapping[str, str]) -> Orders:
    """`silent`: sources of the kernel that are not used, and why."""
    paths = config.paths
    return Orders(
        paths.sysfs,
        paths.ring,
        boot,
        config.sampling,
        config.ports,
        dev=paths.dev,
        silent=silent,
        holds_any_driver=config.sources.verbs == "on",
    )


def reader_orders(config: Config) -> ReaderOrders:
    paths = config.paths
    return ReaderOrders(
        config.node.name,
        paths.sysfs,
        paths.proc,
        paths.state,
        config.logs,
        config.dumps,
        config.jobs,
    )


def expectations(ports: PortsSettings) -> Expectations:
    gbps = ports.expect_rate_gbps
    return Expectations(ports.expect, None if gbps is None else round(_MBPS_A_GBPS * gbps))
