"""Machine: one run of the virtual machine, from its start until it powers off."""

import os
import subprocess
import tempfile
from pathlib import Path

_CPUS, _MEMORY_MIB = 2, 1024
_TAIL_LINES = 40
_ACCELERATOR = "tcg,thread=multi,tb-size=128"
"""MiB of translated code: after a reset every page is slow that the last boot had code on (7.2)."""
_KERNEL_LINE = "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0"


def run_machine(image: Path, payload: Path, out: Path, program: str | None, seconds: float) -> None:
    """Runs `program` alone in the guest, or systemd where there is none; /out there is `out`.

    AssertionError with the end of what it said where it does not power off in time.
    """
    with tempfile.TemporaryDirectory(prefix="flapd-kernel-") as scratch:
        command = [*_qemu(Path(scratch)), *_disks(image, payload), *_out(out)]
        append = _KERNEL_LINE if program is None else f"{_KERNEL_LINE} guest.program={program}"
        try:
            ended = subprocess.run(
                [*command, "-append", append],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                env={**os.environ, "TMPDIR": scratch},  # what the guest writes on its disk
            )
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end of it within {seconds} s\n{_said(out)}") from None
    assert ended.returncode == 0, f"{ended.stderr}\n{_said(out)}"


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
