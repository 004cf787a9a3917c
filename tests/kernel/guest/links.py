"""Links of the guest, taken down and up: each change with the moments just before and just after.

Monotonic nanoseconds. By system calls, since starting a program takes 0.1 s here.
"""

import fcntl
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

Moment = tuple[int, int]
Change = Callable[[bool], Moment]

# include/uapi/linux/sockios.h, if.h
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_IFREQ = struct.Struct("16sH22x")
# include/uapi/linux/netlink.h, rtnetlink.h, if_link.h
_NLM_F_REQUEST_AND_ACK, _RTM_NEWLINK, _IFLA_CARRIER = 5, 16, 33
_HEADER, _IFINFO, _ATTRIBUTE = (
    struct.Struct("IHHII"),
    struct.Struct("BxHiII"),
    struct.Struct("HHBxxx"),
)
_CABLE = "net0"
"""What QEMU calls the cable of eth0."""
_ANSWER_SECONDS = 20
_monitor = threading.Lock()


def run(command: str) -> None:
    """A program with its arguments, to its end."""
    subprocess.run(command.split(), check=True, timeout=180)


def read(path: str) -> str:
    return Path(path).read_text().strip()


def downs(netdev: str) -> int:
    """How often the kernel saw its carrier go."""
    return int(read(f"/sys/class/net/{netdev}/carrier_down_count"))


def guid_of(device: str) -> str:
    return read(f"/sys/class/infiniband/{device}/node_guid")


def link_downed(device: str) -> int:
    return int(read(f"/sys/class/infiniband/{device}/ports/1/hw_counters/link_downed"))


def switch(netdev: str) -> Change:
    """The interface itself, as `ip link set` switches it; of a veth's peer, its cable."""
    name = netdev.encode()

    def change(up: bool) -> Moment:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, _IFREQ.pack(name, 0))
            flags = _IFREQ.unpack(request)[1]
            flags = flags | _IFF_UP if up else flags & ~_IFF_UP
            before_ns = time.monotonic_ns()
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, _IFREQ.pack(name, flags))
            return before_ns, time.monotonic_ns()

    return change


def carrier(netdev: str) -> Change:
    """The carrier of a dummy, which takes orders about it."""
    index = socket.if_nametoindex(netdev)

    def change(up: bool) -> Moment:
        body = _IFINFO.pack(0, 0, index, 0, 0) + _ATTRIBUTE.pack(5, _IFLA_CARRIER, up)
        header = _HEADER.pack(_HEADER.size + len(body), _RTM_NEWLINK, _NLM_F_REQUEST_AND_ACK, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
            before_ns = time.monotonic_ns()
            netlink.send(header + body)
            error = -struct.unpack_from("i", netlink.recv(4096), _HEADER.size)[0]
            after_ns = time.monotonic_ns()
        if error:
            raise OSError(error, os.strerror(error), netdev)
        return before_ns, after_ns

    return change


def cable(netdev: str) -> Change:
    """The cable of a virtio card. QEMU's monitor does not wait for it: the kernel tells when."""
    port = _monitor_port()

    def change(up: bool) -> Moment:
        count = f"/sys/class/net/{netdev}/carrier_{'up' if up else 'down'}_count"
        before = read(count)
        with _monitor:
            before_ns = time.monotonic_ns()
            port.write_bytes(f"set_link {_CABLE} {'on' if up else 'off'}\n".encode())
        while read(count) == before:
            if time.monotonic_ns() - before_ns > _ANSWER_SECONDS * 1_000_000_000:
                raise TimeoutError(f"{count} did not move")
            time.sleep(0.002)
        return before_ns, time.monotonic_ns()

    return change


def _monitor_port() -> Path:
    for port in Path("/sys/class/virtio-ports").iterdir():
        if (port / "name").read_text().strip() == "monitor":
            return Path("/dev") / port.name
    raise FileNotFoundError("this machine has no port to QEMU's monitor")


def flap(change: Change, down_seconds: float) -> dict[str, Moment]:
    down = change(False)
    time.sleep(max(0.0, down_seconds - (time.monotonic_ns() - down[0]) / 1e9))
    return {"down": down, "up": change(True)}
