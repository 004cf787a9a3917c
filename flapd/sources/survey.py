"""One look at every port, without an agent."""

import time
from pathlib import Path

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import PortView
from flapd.model.errors import CouldNotFindOutError
from flapd.model.observation import PortSeen
from flapd.sources.discovery import devices_of, ports_of_device, refuse_no_sysfs
from flapd.sources.plan import TIERS, plan_of
from flapd.sources.port_reader import PortReader
from flapd.sources.settings import PortsSettings


def survey(sysfs: Path, settings: PortsSettings) -> list[PortView]:
    """Every included port as one reading of each of its files shows it.

    FlapdError where this is no sysfs, CouldNotFindOutError where it cannot be read.
    """
    refuse_no_sysfs(sysfs)
    try:
        return _survey(sysfs, settings)
    except OSError as error:
        raise CouldNotFindOutError(f"{sysfs} cannot be read: {error}") from error


def _survey(sysfs: Path, settings: PortsSettings) -> list[PortView]:
    engine = Engine("", FlapSettings())
    ports = [
        port for device in devices_of(sysfs) for port in ports_of_device(sysfs, device, settings)
    ]
    for port in ports:
        engine.step(PortSeen(port, time.monotonic_ns()))
        reader = PortReader(port, plan_of(sysfs, port))
        for tier in TIERS:
            engine.step(reader.sample(reader.sweep(tier)))
            reader.sent()
        reader.close()
    return list(engine.snapshot().ports)
