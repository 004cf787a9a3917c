"""The life of an agent's or a hub's process: from its start to its end, whatever hangs."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import structlog

from flapd import __version__
from flapd.config import DEFAULT_PATH, Config
from flapd.node import Node
from flapd.privileges import has_some_to_lay_down, lay_down_for_good
from flapd.serve.settings import Prices
from flapd.service import ServiceManager
from flapd.sources.launcher_process import LauncherProcess
from flapd.sources.starting import start_own
from flapd.store.lock import WAIT_SECONDS

if TYPE_CHECKING:
    from flapd.hub import Hub
    from flapd.serve.server import Server

END_WITHIN_SECONDS = 4.5
"""SIGTERM is obeyed within this, whatever hardware or disk do; service managers expect 5 s."""
STARTS_WITHIN_SECONDS = 2 * WAIT_SECONDS + 20
"""It waits for two locks, one after the other."""
_LOOK_EVERY_SECONDS = 1.0
_ENDS = (signal.SIGTERM, signal.SIGINT)

_log = structlog.get_logger("flapd.lifecycle")


async def run_node(
    config: Config, read_config: Callable[[], Config], config_path: Path = DEFAULT_PATH
) -> int:
    """The agent until SIGTERM or SIGINT: 0 then, 1 where it could not go on.

    SIGHUP has it read its configuration again, by `read_config`.
    """
    manager = ServiceManager(os.environ)
    manager.starting(STARTS_WITHIN_SECONDS)
    launcher = LauncherProcess() if _gives_capabilities() else None
    node = Node(config, config_path, launcher.start_child if launcher else start_own)
    if launcher is not None:
        _lay_down_capabilities()  # before there are threads
    return await _live(node, manager, read_config, partial(_server, node, config))


async def run_hub(config: Config, read_config: Callable[[], Config], config_path: Path) -> int:
    """The hub, in the same way."""
    from flapd.hub import Hub  # noqa: PLC0415 - an agent needs none of it

    manager = ServiceManager(os.environ)
    manager.starting(STARTS_WITHIN_SECONDS)
    hub = Hub(config, config_path)
    return await _live(hub, manager, read_config, partial(_hub_server, hub, config))


class Living(Protocol):
    """What the process is of: an agent or a hub."""

    node: str

    @property
    def failed(self) -> bool: ...

    @property
    def turned_ns(self) -> int: ...

    def status_line(self) -> str: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def reload(self, read_config: Callable[[], Config]) -> None: ...


async def _live(
    living: Living,
    manager: ServiceManager,
    read_config: Callable[[], Config],
    new_server: Callable[[], "Server"],
) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    _obey(loop, stopping, partial(_reload, living, read_config, manager))
    living.start()
    server = new_server()
    try:
        await server.start()
    except BaseException:
        living.stop()
        raise
    _log.info("started", node=living.node, version=__version__)
    manager.ready()  # not once all is known: dead hardware must not fail the start
    await _until_it_ends(living, manager, stopping)
    status = 1 if living.failed else 0
    end_whatever_happens(status)
    manager.stopping()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await server.stop()
    await loop.run_in_executor(None, living.stop)
    _log.info("stopped")
    for number in _ENDS:  # the interpreter's end would undo handlers
        signal.signal(number, signal.SIG_IGN)
    return status


def _gives_capabilities() -> bool:
    """What a unit gives is for the processes that read, not for the one that answers HTTP."""
    try:
        return has_some_to_lay_down()
    except OSError as error:
        _log.warning("capabilities_unknown", error=str(error))
        return False


def _lay_down_capabilities() -> None:
    try:
        lay_down_for_good()
    except OSError as error:
        _log.warning("capabilities_kept", error=str(error))


def _server(node: Node, config: Config) -> "Server":
    """Imported only now, which takes as long as a flap: the ports are being read already."""
    from flapd.serve.server import Server, agent_app  # noqa: PLC0415

    prices = Prices(config.job, config.cost)
    app = agent_app(node, config.metrics.counters, prices)
    return Server(app, config.http, Path(config.paths.socket))


def _hub_server(hub: "Hub", config: Config) -> "Server":
    from flapd.serve.hub.routes import hub_app  # noqa: PLC0415
    from flapd.serve.server import Server  # noqa: PLC0415

    app = hub_app(hub, config.hub.max_drains, Prices(config.job, config.cost))
    return Server(app, config.http, Path(config.paths.socket))


def _obey(
    loop: asyncio.AbstractEventLoop, stopping: asyncio.Event, reload: Callable[[], None]
) -> None:
    """Not by the loop's own handlers: those end with the loop, and a second SIGTERM would kill."""
    for number in _ENDS:
        signal.signal(number, lambda *_: _wake(loop, stopping.set))
    in_thread = partial(loop.run_in_executor, None, reload)
    signal.signal(signal.SIGHUP, lambda *_: _wake(loop, in_thread))


async def _until_it_ends(living: Living, manager: ServiceManager, stopping: asyncio.Event) -> None:
    while not stopping.is_set() and not living.failed:
        manager.tell_status(living.status_line())
        manager.feed_watchdog(living.turned_ns)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopping.wait(), _LOOK_EVERY_SECONDS)


def _reload(living: Living, read_config: Callable[[], Config], manager: ServiceManager) -> None:
    manager.reloading()
    try:
        living.reload(read_config)
    finally:
        manager.ready()


def _wake(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and so do we
        loop.call_soon_threadsafe(do)


def end_whatever_happens(status: int) -> None:
    """A hanging disk or device must not keep the agent from ending."""

    def end() -> None:
        _log.error("ended_by_force")
        os._exit(status)

    timer = threading.Timer(END_WITHIN_SECONDS, end)
    timer.daemon = True
    timer.start()
