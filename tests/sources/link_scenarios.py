"""What happens to netdevs in a namespace of their own; run by tests.sources.namespace."""

import errno
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flapd.sources.ethtool_netlink import EthtoolNetlink
from flapd.sources.ethtool_statistics import EthtoolStatistics
from flapd.sources.files import reason_of
from flapd.sources.kernel_paths import kernels_netdev, netdev_identity, why_not_kernels
from flapd.sources.netlink_codec import encode_message, messages
from flapd.sources.netlink_socket import NetlinkSocket
from flapd.sources.rtnetlink import LinkFollower, LinkHint
from tests.trees import lay_out

SYSFS = Path("/sys")
WITHIN_SECONDS = 15
RTM_NEWLINK, RTM_GETLINK = 16, 18


def ip(*commands: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


def make_links() -> None:
    ip("link add v0 type veth peer name v1", "link set v0 up", "link set v1 up")


def flap(times: int) -> None:
    ip(*(f"link set v1 {state}" for _ in range(times) for state in ("down", "up")))


def counts(netdev: str = "v0") -> tuple[int, int]:
    """As sysfs has them: downs, ups."""
    directory = SYSFS / "class/net" / netdev
    names = ("carrier_down_count", "carrier_up_count")
    downs, ups = (int((directory / name).read_text()) for name in names)
    return downs, ups


class Heard:
    """Everything a follower told, and when something was."""

    def __init__(self) -> None:
        self.hints: list[LinkHint] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._changed = threading.Condition()

    def tell(self, hint: LinkHint) -> None:
        self.may_go_on.wait(WITHIN_SECONDS)
        with self._changed:
            self.hints.append(hint)
            self._changed.notify_all()

    def wait_for(self, is_there: Callable[[list[LinkHint]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: is_there(self.hints), WITHIN_SECONDS), self.hints


@contextmanager
def following(
    *netdevs: str, sysfs: Path = SYSFS, room_bytes: int = 1 << 20
) -> Iterator[tuple[LinkFollower, Heard]]:
    heard = Heard()
    follower = LinkFollower(sysfs, heard.tell, again_after_seconds=0.05, room_bytes=room_bytes)
    follower.follow(netdevs)
    follower.start()
    try:
        yield follower, heard
    finally:
        assert follower.stop(WITHIN_SECONDS)


def was_asked(hints: list[LinkHint]) -> bool:
    """And not only told what was on its way when it began to listen."""
    return any(hint.asked_ns is not None for hint in hints)


def plain(hints: list[LinkHint]) -> list[dict[str, Any]]:
    return [{key: getattr(hint, key) for key in hint.__struct_fields__} for hint in hints]


def flaps() -> Any:
    make_links()
    with following("v0") as (_, heard):
        heard.wait_for(was_asked)
        before = counts()
        flap(20)
        after = counts()
        heard.wait_for(lambda hints: (hints[-1].carrier_downs, hints[-1].carrier_ups) == after)
    return {"before": before, "after": after, "hints": plain(heard.hints)}


def set_down() -> Any:
    make_links()
    with following("v0") as (_, heard):
        heard.wait_for(was_asked)
        ip("link set v0 down")
        heard.wait_for(lambda hints: not hints[-1].flags & 1)
    return plain(heard.hints)


def more_than_there_is_room_for() -> Any:
    make_links()
    with following("v0", room_bytes=4096) as (follower, heard):
        heard.wait_for(was_asked)
        heard.may_go_on.clear()
        flap(100)
        heard.may_go_on.set()
        heard.wait_for(
            lambda hints: hints[-1].asked_ns is not None and hints[-1].carrier_downs == counts()[0]
        )
        return {"overruns": follower.overruns, "asked": plain(heard.hints)[-1]["asked_ns"]}


def made_anew() -> Any:
    make_links()
    with following("v0") as (_, heard):
        heard.wait_for(was_asked)
        ip("link del v0")
        heard.wait_for(lambda hints: not hints[-1].present)
        ip("link add v9 type veth peer name v8")  # takes the numbers
        make_links()
        heard.wait_for(lambda hints: hints[-1].present and hints[-1].carrier is True)
    return plain(heard.hints)


def followed_later() -> Any:
    make_links()
    with following() as (_, heard):
        flap(2)
        ip("link add other type veth peer name another")
        assert heard.hints == []
    with following("v1") as (follower, heard):
        heard.wait_for(was_asked)
        follower.follow({"v0"})
        heard.wait_for(lambda hints: hints[-1].netdev == "v0")
        flap(1)
        heard.wait_for(lambda hints: hints[-1].carrier_downs == counts()[0])
    return [hint.netdev for hint in heard.hints]


def strangers() -> Any:
    """Trees that show other netdevs than the kernel has here."""
    make_links()
    with tempfile.TemporaryDirectory() as root:
        index, address = kernels_netdev("v0")
        at = "class/net/v0"
        lay_out(Path(root) / "a", {f"{at}/ifindex": "77\n", f"{at}/address": address + "\n"})
        lay_out(Path(root) / "b", {f"{at}/ifindex": f"{index}\n", f"{at}/address": "02:0:0\n"})
        lay_out(Path(root) / "c", {f"{at}/carrier": "1\n"})
        told = {}
        for name in "abc":
            with following("v0", sysfs=Path(root) / name) as (follower, heard):
                until = time.monotonic() + WITHIN_SECONDS
                while follower.trouble is not None and time.monotonic() < until:
                    time.sleep(0.01)
                flap(1)
                told[name] = dict(follower.strangers)
            assert heard.hints == []
    return told


def identity() -> Any:
    make_links()
    return {
        "why_not": why_not_kernels(SYSFS),
        "sysfs": netdev_identity(SYSFS, "v0"),
        "kernel": kernels_netdev("v0"),
        "none": netdev_identity(SYSFS, "v7"),
    }


def dump() -> Any:
    """A real answer of many parts, and what is refused."""
    for pair in range(60):
        ip(f"link add a{pair} type veth peer name b{pair}")
    kernel = NetlinkSocket(socket.NETLINK_ROUTE)
    links = kernel.ask(RTM_GETLINK, bytes(16), dump=True)
    try:
        kernel.ask(RTM_GETLINK, bytes(4) + (9999).to_bytes(4, sys.byteorder) + bytes(8))
    except OSError as error:
        refused = reason_of(error)
    (lo,) = kernel.ask(RTM_GETLINK, bytes(4) + (1).to_bytes(4, sys.byteorder) + bytes(8))
    return {"links": len(links), "refused": refused, "kind": lo.kind}


def others_are_not_believed() -> Any:
    """Another process sends what looks like an answer, before the kernel does."""
    kernel = NetlinkSocket(socket.NETLINK_ROUTE)
    other = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    other.bind((0, 0))
    port = kernel._socket.getsockname()[0]
    other.sendto(encode_message(RTM_NEWLINK, 0, 1, b"forged"), (port, 0))
    (answer,) = kernel.ask(RTM_GETLINK, bytes(4) + (1).to_bytes(4, sys.byteorder) + bytes(8))
    return {"forged": answer.payload == b"forged"}


def late_answers() -> Any:
    """What answers an earlier question does not answer this one."""
    kernel = NetlinkSocket(socket.NETLINK_ROUTE)
    question = bytes(4) + (1).to_bytes(4, sys.byteorder) + bytes(8)
    kernel._socket.send(encode_message(RTM_GETLINK, 1, 0, question))
    (answer,) = kernel.ask(RTM_GETLINK, question)
    return {"sequence": answer.sequence}


def group() -> Any:
    kernel = NetlinkSocket(socket.NETLINK_ROUTE)
    kernel.join(1)
    assert kernel.waiting() == []
    make_links()
    told = kernel.waiting()
    kernel._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    flap(50)
    overrun = None
    try:
        kernel.waiting()
    except OSError as error:
        overrun = error.errno
    return {
        "kinds": sorted({message.kind for message in told}),
        "overrun": overrun == errno.ENOBUFS,
        "whole": all(isinstance(message.payload, bytes) for message in told),
        "parsed": len(list(messages(b""))),
    }


def ethtool() -> Any:
    make_links()
    kernel = EthtoolNetlink()
    found: dict[str, Any] = {"up": kernel.link_state("v0").is_up}
    ip("link set v1 down")
    state = kernel.link_state("v0")
    found |= {"down": state.is_up, "reason": state.reason, "downs": state.downs}
    statistics = EthtoolStatistics("v0")
    found["names"] = statistics._count()
    for name, ask in {
        "module": lambda: kernel.module("v0"),
        "statistics": statistics.read,
        "gone": lambda: kernel.link_state("v7"),
        "gone_statistics": EthtoolStatistics("v7").read,
    }.items():
        try:
            ask()
        except OSError as error:
            found[name] = reason_of(error)
    return found


if __name__ == "__main__":
    json.dump(globals()[sys.argv[1]](), sys.stdout)
