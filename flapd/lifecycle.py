"""The life of the agent's process: from its start over reloads to its end, whatever hangs."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from flapd import __version__
from flapd.config import DEFAULT_PATH, Config
from flapd.node import Node
from flapd.privileges import lay_down_capabilities
from flapd.serve.settings import Prices
from flapd.service import ServiceManager
from flapd.store.lock import WAIT_SECONDS

if TYPE_CHECKING:
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
    node = Node(config, config_path)
    _lay_down_capabilities()  # before there are threads
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    _obey(loop, stopping, partial(_reload, node, read_config, manager))
    node.start()
    server = _server(node, config)
    try:
        await server.start()
    except BaseException:
        node.stop()
        raise
    _log.info("started", node=node.node, version=__version__)
    manager.ready()  # not once all ports are read: dead hardware must not fail the start
    await _until_it_ends(node, manager, stopping)
    status = 1 if node.failed else 0
    end_whatever_happens(status)
    manager.stopping()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await server.stop()
    await loop.run_in_executor(None, node.stop)
    _log.info("stopped")
    for number in _ENDS:  # the interpreter's end would undo handlers
        signal.signal(number, signal.SIG_IGN)
    return status


def _lay_down_capabilities() -> None:
    """What a unit gives is for the processes that read, not for the one that answers HTTP."""
    try:
        lay_down_capabilities()
    except OSError as error:
        _log.warning("capabilities_kept", error=str(error))


def _server(node: Node, config: Config) -> "Server":
    """Imported only now, which takes as long as a flap: the ports are being read already."""
    from flapd.serve.server import Server  # noqa: PLC0415

    prices = Prices(config.job, config.cost)
    socket_path = Path(config.paths.socket)
    return Server(node, config.http, socket_path, config.metrics.counters, prices)


def _obey(
    loop: asyncio.AbstractEventLoop, stopping: asyncio.Event, reload: Callable[[], None]
) -> None:
    """Not by the loop's own handlers: those end with the loop, and a second SIGTERM would kill."""
    for number in _ENDS:
        signal.signal(number, lambda *_: _wake(loop, stopping.set))
    in_thread = partial(loop.run_in_executor, None, reload)
    signal.signal(signal.SIGHUP, lambda *_: _wake(loop, in_thread))


async def _until_it_ends(node: Node, manager: ServiceManager, stopping: asyncio.Event) -> None:
    while not stopping.is_set() and not node.failed:
        manager.tell_status(node.status_line())
        manager.feed_watchdog(node.turned_ns)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopping.wait(), _LOOK_EVERY_SECONDS)


def _reload(node: Node, read_config: Callable[[], Config], manager: ServiceManager) -> None:
    manager.reloading()
    try:
        node.reload(read_config)
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
