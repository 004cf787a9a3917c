"""Machine: one run of the virtual machine, from its start until it powers off."""

import os
import subprocess
import tempfile
import threading
from pathlib import Path

_CPUS, _MEMORY_MIB = 2, 1024
_TAIL_LINES = 40
_ACCELERATOR = "tcg,thread=multi,tb-size=128"
"""MiB of translated code: after a reset every page is slow that the last boot had code on (7.2)."""
_KERNEL_LINE = "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0"


class Machine:
    """One that runs `program` alone in the guest, or systemd where that is None."""

    def __init__(self, out: Path, program: str | None, told: str, within_seconds: float) -> None:
        """What the guest finds as /out is `out`; the last file that it leaves there is `told`."""
        self.out = out
        self._program = program
        self._told = told
        self._within_seconds = within_seconds
        self._lock = threading.Lock()
        self._qemu: subprocess.Popen[str] | None = None
        self._is_stopped = False

    def run(self, image: Path, payload: Path) -> None:
        """AssertionError with the end of what it said where it did not do all it was to do."""
        with tempfile.TemporaryDirectory(prefix="flapd-kernel-") as scratch:
            command = [*_qemu(Path(scratch)), *_disks(image, payload), *_out(self.out)]
            qemu = self._start([*command, "-append", self._append()], scratch)
            try:
                _, errors = qemu.communicate(timeout=self._within_seconds)
            except subprocess.TimeoutExpired:
                qemu.kill()
                qemu.communicate()
                limit = f"no end of it within {self._within_seconds} s"
                raise AssertionError(f"{limit}\n{_said(self.out)}") from None
        assert qemu.returncode == 0, f"{errors}\n{_said(self.out)}"
        assert (self.out / self._told).exists(), f"it failed in the guest\n{_said(self.out)}"

    def stop(self) -> None:
        """From any thread: it ends at once, or never starts."""
        with self._lock:
            self._is_stopped = True
            if self._qemu is not None:
                self._qemu.kill()

    def _append(self) -> str:
        if self._program is None:
            return _KERNEL_LINE
        return f"{_KERNEL_LINE} guest.program={self._program}"

    def _start(self, command: list[str], scratch: str) -> "subprocess.Popen[str]":
        with self._lock:
            assert not self._is_stopped, "nobody waits for this machine any more"
            self._qemu = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "TMPDIR": scratch},  # what the guest writes on its disk
            )
            return self._qemu


def _qemu(scratch: Path) -> list[str]:
    """Emulated everywhere: that /dev/kvm is there does not mean that it works.

    The guest holds QEMU's monitor, by which it pulls its own cables: run only our own code in it.
    """
    monitor = scratch / "monitor"
    return [
        *("qemu-system-x86_64", "-M", "q35", "-accel", _ACCELERATOR, "-cpu", "max"),
        *("-smp", str(_CPUS), "-m", str(_MEMORY_MIB), "-nodefaults", "-display", "none"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"socket,id=monitor,path={monitor},server=on,wait=off"),
        *("-mon", "chardev=monitor,mode=readline"),
        *("-chardev", f"socket,id=guest,path={monitor}"),
        *("-device", "virtserialport,chardev=guest,name=monitor"),
        *("-netdev", "hubport,id=hub0,hubid=0", "-netdev", "hubport,id=hub1,hubid=0"),
        *("-device", "virtio-net-pci,id=net0,netdev=hub0,mac=52:54:00:00:00:01"),
        *("-device", "virtio-net-pci,id=net1,netdev=hub1,mac=52:54:00:00:00:02"),
    ]


def _disks(image: Path, payload: Path) -> list[str]:
    """The image stays as it is: what is written lives as long as this run, and over reboots."""
    return [
        *("-kernel", str(image / "vmlinux"), "-initrd", str(image / "initrd")),
        *("-drive", f"if=virtio,format=raw,snapshot=on,file={image}/root.ext4"),
        *("-drive", f"if=virtio,format=raw,readonly=on,file={payload}"),
    ]


def _out(out: Path) -> list[str]:
    return [
        *("-serial", f"file:{out}/console"),
        *("-virtfs", f"local,path={out},mount_tag=out,security_model=none"),
    ]


def _said(out: Path) -> str:
    """The end of the console and of the program's log."""
    texts = [
        (out / name).read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        for name in ("console", "log")
        if (out / name).exists()
    ]
    return "\n".join(line for text in texts for line in text)
