"""One port as plain files, and its reader."""

from itertools import count
from pathlib import Path

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import Sample
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.plan import plan_of
from flapd.sources.port_reader import PortReader
from tests.trees import lay_out

IB_FILES = {
    "state": "4: ACTIVE\n",
    "phys_state": "5: LinkUp\n",
    "rate": "400 Gb/sec (4X NDR)\n",
    "counters/link_downed": "17\n",
    "counters/port_xmit_data": "1000\n",
    "counters/symbol_error": "2\n",
    "counters/port_rcv_errors": "0\n",
    "hw_counters/packet_seq_err": "5\n",
    "hw_counters/lifespan": "12\n",
}


class Bench:
    """A port as plain files, its reader, and a clock that goes on a millisecond a look."""

    def __init__(
        self, root: Path, port: Port, files: dict[str, str], *, known_up: bool = True
    ) -> None:
        self.directory = root / "class/infiniband/mlx5_0/ports/1"
        self.netdev = root / "class/net/eth2"
        lay_out(self.directory, files)
        self._ticks = count(0)
        self.now_ns = 0
        self.plan = plan_of(root, port)
        self.reader = PortReader(port, self.plan, self._look, known_up=known_up)

    def _look(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def sweep(self, tier: Tier, *, closely: bool = False) -> Sample:
        return self.reader.sample(self.reader.sweep(tier, closely=closely))

    def told(self, tier: Tier) -> Sample:
        """A sweep that arrives."""
        sample = self.sweep(tier)
        self.reader.sent()
        return sample

    def write(self, name: str, content: str) -> None:
        """In place, as the kernel does it: kept descriptors see it."""
        place = self.netdev if name.startswith("net/") else self.directory
        (place / name.removeprefix("net/")).write_text(content)

    def break_file(self, name: str) -> None:
        """Reads of it fail from now on."""
        (self.directory / name).unlink()
        (self.directory / name).mkdir()
        self.reader.close()

    def mend_file(self, name: str, content: str) -> None:
        (self.directory / name).rmdir()
        self.write(name, content)


def settle(bench: Bench) -> None:
    """Everything told, and long enough ago that the state is not read closely."""
    for tier in ("fast", "slow", "rare"):
        bench.sweep(tier)
        bench.reader.sent()
    bench.now_ns += 61 * SECOND_NS
