"""Listening sockets: TCP, and the Unix socket that only root and one group may use."""

import grp
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from flapd.model.errors import FlapdError

GROUP = "flapd"

_MODE = 0o660
_SILENT_PEER_MS = 30_000


def tcp_socket(host: str, port: int) -> socket.socket:
    """Bound and not yet listening; `::` means IPv4 as well."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server(
            (host, port), family=family, dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6()
        )
    except OSError as error:
        raise FlapdError(
            f"http.listen: cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}"
        ) from error
    # A peer that takes no byte of its answer keeps its connection no longer than this.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_PEER_MS)
    return bound


def unix_socket(path: Path) -> socket.socket:
    """Bound and not yet listening, so that nobody gets in before its mode and group are set."""
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        bound.bind(str(path))
        path.chmod(_MODE)
        _give_to_group(path)
    except OSError as error:
        bound.close()
        raise FlapdError(f"paths.socket: cannot make {path}: {error.strerror}") from error
    return bound


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise FlapdError(f"paths.socket: {path} is there and is no socket; remove it")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        if _answers(probe, path):
            raise FlapdError(f"paths.socket: another agent answers on {path}")
    path.unlink(missing_ok=True)


def _answers(probe: socket.socket, path: Path) -> bool:
    try:
        probe.connect(str(path))
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True  # full, or not ours to use: somebody listens
    return True


def _give_to_group(path: Path) -> None:
    """Where there is the group and it may be given; else the socket is root's alone."""
    with suppress(KeyError, PermissionError):
        os.chown(path, -1, grp.getgrnam(GROUP).gr_gid)
