"""Processes as files under another root, for what no test may have: GPUs, containers, old pids."""

from pathlib import Path

from tests.trees import lay_out

BOOT_UNIX_SECONDS = 1_796_000_000


class FakeProc:
    def __init__(self, root: Path) -> None:
        self.root = root
        lay_out(root, {"stat": f"cpu 0 0 0 0\nbtime {BOOT_UNIX_SECONDS}\n"})
        self.add(1, threads=["systemd"])

    def add(
        self,
        pid: int,
        environment: dict[str, str] | None = None,
        *,
        parent: int = 1,
        threads: list[str] | None = None,
        files: dict[int, str] | None = None,
        inner_pid: int | None = None,
        cgroup: str = "0::/user.slice\n",
        state: str = "S",
        libraries: str = "",
        start: int = 100,
    ) -> Path:
        """`start` is in hundredths of a second since boot."""
        place = self.root / str(pid)
        block = "".join(f"{name}={value}\0" for name, value in (environment or {}).items())
        inner = "" if inner_pid is None else f"\t{inner_pid}"
        numbers = f"{parent} {' '.join('0' * 17)} {start} {' '.join('0' * 30)}"
        lay_out(
            place,
            {
                "environ": block,
                "cgroup": cgroup,
                "maps": libraries,
                "mountinfo": "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
                "stat": f"{pid} (python) {state} {numbers}\n",
                "status": f"Name:\tpython\nState:\t{state}\nTgid:\t{pid}\nNSpid:\t{pid}{inner}\n",
            },
        )
        for number, name in enumerate(threads or ["python"]):
            lay_out(place / "task" / str(pid + number), {"comm": f"{name}\n"})
        (place / "fd").mkdir()
        for number, target in (files or {}).items():
            (place / "fd" / str(number)).symlink_to(target)
            lay_out(place / "fdinfo", {str(number): "pos:\t0\nflags:\t02\nmnt_id:\t22\n"})
        (place / "root").symlink_to(self.root)
        (place / "cwd").symlink_to("/work")
        return place
