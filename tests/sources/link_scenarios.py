"""What happens to netdevs in a namespace of their own; run by tests.sources.namespace."""

import errno
import json
import queue
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_WITNESS,
    ClockPair,
    LinkHint,
    Observation,
    PortSeen,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.ethtool_netlink import EthtoolNetlink
from flapd.sources.ethtool_statistics import EthtoolStatistics
from flapd.sources.files import reason_of
from flapd.sources.kernel_paths import (
    kernels_netdev,
    netdev_identity,
    why_no_netdevs,
    why_not_kernels,
)
from flapd.sources.link_events import LinkEvents
from flapd.sources.netdev_asker import NetdevAsker
from flapd.sources.netlink_codec import Message, encode_message, messages
from flapd.sources.netlink_socket import NetlinkSocket
from flapd.sources.rtnetlink import LinkFollower
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


def passed_through() -> Any:
    """Why nothing is heard of netdevs in a tree that has one of the kernel's, or one like it."""
    make_links()
    index, address = netdev_identity(SYSFS, "v0") or (0, "")
    trees = {
        "same": (index, address),
        "renumbered": (index + 1, address),
        "loopback": (1, "00:00:00:00:00:00"),
    }
    told = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, (number, hardware) in trees.items():
            netdev = "lo" if name == "loopback" else "v0"
            files = {"ifindex": f"{number}\n", "address": f"{hardware}\n"}
            lay_out(Path(directory, name, "class/net", netdev), files)
            told[name] = why_no_netdevs(Path(directory, name))
    return told


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


class SlowKernel(NetlinkSocket):
    """A driver that asks its firmware for each part of an answer, or a node with no time for us."""

    def _received(self, flags: int) -> Iterator[Message]:
        time.sleep(0.06)
        return super()._received(flags)


def slow_dump() -> Any:
    for pair in range(60):
        ip(f"link add a{pair} type veth peer name b{pair}")
    return len(SlowKernel(socket.NETLINK_ROUTE).ask(RTM_GETLINK, bytes(16), dump=True))


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


def events_of_ports() -> Any:
    """What the agent hears of the netdevs behind its ports, and which ports it has read."""
    make_links()
    heard, read = Heard(), Reads()
    events = LinkEvents(SYSFS, None, heard.tell, read.now)
    ports = {
        "of v0": Port("a/1", "rxe0", 1, "Ethernet", netdev="v0"),
        "bond of v0": Port("b/1", "mlx5_bond_0", 1, "Ethernet", netdev="bond0", members=("v0",)),
        "of none": Port("c/1", "efa_0", 1, "Unknown"),
    }
    before = events.of(ports["of v0"])
    events.follow(ports.values())
    events.start()
    heard.wait_for(was_asked)
    wait_until(lambda: events.of(ports["of v0"]) == "on")
    flap(1)
    heard.wait_for(lambda hints: (hints[-1].carrier_downs, hints[-1].carrier_ups) == counts())
    wait_until(lambda: bool(read.keys))
    sources = {name: events.of(port) for name, port in ports.items()}
    events.stop()
    return {
        "before": before,
        "read": [sorted(keys) for keys in read.keys],
        "sources": sources,
        "netdevs": sorted({hint.netdev for hint in heard.hints}),
    }


class Reads:
    def __init__(self) -> None:
        self.keys: list[Collection[str]] = []

    def now(self, keys: Collection[str]) -> None:
        self.keys.append(keys)


def engine_with_messages() -> Any:
    """Real flaps, told by messages and by samples of the counts in whatever order they come."""
    make_links()
    port = Port("a/1", "rxe0", 1, "Ethernet", netdev="v0", witnesses=("net/carrier_down_count",))
    engine = Engine("node7", FlapSettings(merge_within=Duration(0)))
    told: dict[str, Outage] = {}
    true = []
    seen: queue.Queue[Observation] = queue.Queue()
    events = LinkEvents(SYSFS, None, seen.put, lambda _keys: None)
    seen.put(ClockPair(0, 10**18, "boot1"))
    seen.put(PortSeen(port, 0))
    seen.put(sample_of_v0(READ_FIRST | READ_CARRIER))
    events.follow([port])
    events.start()
    wait_until(lambda: events.of(port) == "on")
    chance = random.Random(7)
    for _ in range(60):
        seen.put(sample_of_v0())
        down = at_once("link set v1 down")
        time.sleep(chance.uniform(0, 0.02))
        if chance.random() < 0.5:
            seen.put(sample_of_v0())
        up = at_once("link set v1 up")
        time.sleep(chance.uniform(0, 0.02))
        true.append({"down": down, "up": up})
    until = time.monotonic() + 1
    while time.monotonic() < until:
        seen.put(sample_of_v0())
        time.sleep(0.05)
    events.stop()
    while not seen.empty():
        told |= {event.id: event for event in engine.step(seen.get()) if isinstance(event, Outage)}
    return {"true": true, "told": [json.loads(msgspec.json.encode(flap)) for flap in told.values()]}


def at_once(command: str) -> tuple[int, int]:
    before_ns = time.monotonic_ns()
    ip(command)
    return before_ns, time.monotonic_ns()


def sample_of_v0(more: int = 0) -> Sample:
    before_ns = time.monotonic_ns()
    directory = SYSFS / "class/net/v0"
    names = ("carrier_down_count", "carrier_up_count", "carrier")
    values = {f"net/{name}": int((directory / name).read_text()) for name in names}
    return Sample("a/1", before_ns, time.monotonic_ns(), READ_WITNESS | more, values)


def asked_netdev() -> Any:
    """What an asker tells of a real netdev, and of one that a copy of sysfs shows."""
    make_links()
    port = Port("a/1", "rxe0", 1, "Ethernet", netdev="v0")
    with tempfile.TemporaryDirectory() as root:
        lay_out(Path(root), {"class/net/v0/ifindex": "77\n", "class/net/v0/address": "02\n"})
        told = {}
        for name, sysfs in {"kernels": SYSFS, "copy": Path(root)}.items():
            asker = NetdevAsker(sysfs, SECOND_NS, lambda _told: True, lambda _device: True)
            asker.follow("rxe0", {"a/1": port})
            asker.start()
            told[name] = asker
            wait_until(partial(has_answered, asker))
    kernels, copy = told["kernels"], told["copy"]
    source, taken = kernels.source_of(port), kernels.take_statistics("a/1")
    ip("link set v1 down")
    kernels.note("a/1", is_down=True, is_counted_by=False)
    wait_until(lambda: kernels.source_of(port) == "on")
    return {
        "source": source,
        "taken": taken,
        "after_down": kernels.source_of(port),
        "of_a_copy": copy.module_of(port),
    }


def has_answered(asker: NetdevAsker) -> bool:
    return len(asker._asked["a/1"].refused) == 2


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


if __name__ == "__main__":
    json.dump(globals()[sys.argv[1]](), sys.stdout)
