"""NetdevAsker: asks the drivers of netdevs what takes long to answer, in a thread of its own.

Each question waits for the lock of all network configuration, which one hanging driver holds up
for everybody; so one thread asks for all ports, and nobody waits for it. Statistics are left
for whoever reads the port; why a link is down, and which module is in it, is told.
"""

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from flapd.model.observation import LinkReason, ModuleSeen
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.ethtool_netlink import EthtoolNetlink
from flapd.sources.ethtool_statistics import EthtoolStatistics
from flapd.sources.files import reason_of
from flapd.sources.kernel_paths import kernels_netdev, netdev_identity

COUNTING_EVERY_NS = SECOND_NS
"""Statistics of a port that must be counted by them: mlx5 asks its firmware ten things for it."""
FIRST_PAUSE_NS = SECOND_NS
"""Why a link is down is asked again after this, then after pauses that double: drivers find it
out in steps."""
MODULE_EVERY_NS = 600 * SECOND_NS
AGAIN_AFTER_NS = 60 * SECOND_NS
"""What is refused is asked for again after so long."""
TOO_OLD_NS = SECOND_NS
"""Statistics that took longer to be told tell nothing of now."""
WAITED_FOR_NS = 5 * SECOND_NS
RESTS_TIMES = 4
"""So many times as long as it took an answer to come the lock is left to others,"""
LONGEST_REST_NS = SECOND_NS
"""but no longer than this."""
_NEVER_NS = 1 << 62

NO_NETDEV = "the port has no netdev"


class Statistics(msgspec.Struct, frozen=True):
    """What one question for them gave, asked at `before_ns`."""

    told: Mapping[str, int] | str
    """Values, or why there are none."""
    before_ns: int


class Asked:
    """One port with a netdev, and when which question is due; under the lock of the asker."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.netdev = port.netdev or ""
        self.is_down = False
        self.is_counted_by = False
        """Its own witness counts no further."""
        self.pause_ns = FIRST_PAUSE_NS
        self.due_ns = {"reason": _NEVER_NS, "statistics": 0, "module": 0}
        """The first of what is due together is asked first."""
        self.refused: dict[str, str] = {}
        """Why what was asked last was not answered; nothing: it was."""
        self.answered: frozenset[str] = frozenset()
        self.told_reason: str | None = None
        self.told_module: tuple[str | None, ...] | None = None

    @property
    def next_question(self) -> str:
        return min(self.due_ns, key=self.due_ns.__getitem__)


class NetdevAsker:
    """Used from several threads; the questions are asked in its own."""

    def __init__(
        self,
        sysfs: Path,
        rare_ns: int,
        tell: Callable[[LinkReason | ModuleSeen], bool],
        may_ask: Callable[[str], bool],
        *,
        open_ethtool: Callable[[], EthtoolNetlink] = EthtoolNetlink,
        open_statistics: Callable[[str], EthtoolStatistics] = EthtoolStatistics,
        kernels: Callable[[str], tuple[int, str]] = kernels_netdev,
    ) -> None:
        """`tell` never waits; `may_ask` says whether a device answers quickly at present."""
        self.trouble: str | None = None
        """Why it asks nothing at all; None while it does."""
        self._sysfs = sysfs
        self._rare_ns = rare_ns
        self._tell = tell
        self._may_ask = may_ask
        self._open_ethtool = open_ethtool
        self._open_statistics = open_statistics
        self._kernels = kernels
        self._ethtool: EthtoolNetlink | None = None
        self._asked: dict[str, Asked] = {}
        self._statistics: dict[str, Statistics] = {}
        self._changed = threading.Condition()
        self._asking: tuple[str, int] | None = None
        """The netdev that is asked now, and since when."""
        self._thread = threading.Thread(target=self._run, name="ethtool", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def follow(self, device: str, ports: Mapping[str, Port]) -> None:
        """These are all the ports of this device, by key."""
        with self._changed:
            for key, asked in list(self._asked.items()):
                if asked.port.device == device and ports.get(key) != asked.port:
                    del self._asked[key]
            for key, port in ports.items():
                known = self._asked.get(key)
                if port.netdev is not None and (known is None or known.port != port):
                    self._asked[key] = Asked(port)
            self._changed.notify()

    def note(self, key: str, *, is_down: bool, is_counted_by: bool) -> bool:
        """Its link moved, or what must be known of it changed; False: it is not followed."""
        with self._changed:
            asked = self._asked.get(key)
            if asked is None:
                return False
            due_ns = asked.due_ns
            if asked.is_down and not is_down:
                due_ns["module"] = 0  # perhaps another one by now
            due_ns["reason"], asked.pause_ns = 0, FIRST_PAUSE_NS
            if is_counted_by and not asked.is_counted_by:
                due_ns["statistics"] = 0
            asked.is_down, asked.is_counted_by = is_down, is_counted_by
            self._changed.notify()
        return True

    def take_statistics(self, key: str) -> Mapping[str, int] | str | None:
        """What was told of them since; None where nothing was, or too long ago."""
        taken = self._statistics.pop(key, None)
        if taken is None or time.monotonic_ns() - taken.before_ns > TOO_OLD_NS:
            return None
        return taken.told

    def source_of(self, port: Port) -> str:
        """Why nothing is told of this port; "on" where something is."""
        if self.trouble is not None:
            return self.trouble
        if port.netdev is None:
            return NO_NETDEV
        asking, asked = self._asking, self._asked.get(port.key)
        if asking is not None and time.monotonic_ns() - asking[1] > WAITED_FOR_NS:
            return f"the kernel does not answer for {asking[0]}, and nobody else is asked meanwhile"
        if asked is None or not (asked.refused or asked.answered):
            return "it was not asked yet"
        if asked.answered - {"module"}:
            return "on"
        return ", ".join(f"{what}: {why}" for what, why in sorted(dict(asked.refused).items()))

    def module_of(self, port: Port) -> str:
        """Why it is not told which module is in this port; "on" where it is."""
        asked = self._asked.get(port.key)
        if asked is None or self.trouble is not None:
            return self.source_of(port)
        if "module" in asked.answered:
            return "on"
        return asked.refused.get("module", "it was not asked yet")

    def _run(self) -> None:
        """Without it everything else goes on."""
        try:
            while True:
                asked, question = self._next()
                began_ns = time.monotonic_ns()
                self._ask(asked, question)
                took_ns = time.monotonic_ns() - began_ns
                time.sleep(min(RESTS_TIMES * took_ns, LONGEST_REST_NS) / SECOND_NS)
        except Exception as error:  # noqa: BLE001 - the one broad handler, that of a source
            traceback.print_exc()
            self.trouble = f"it failed: {error!r}"

    def _next(self) -> tuple[Asked, str]:
        """Waits for the next question, and says when it is to be asked again."""
        with self._changed:
            while True:
                now_ns = time.monotonic_ns()
                asked = min(
                    self._asked.values(),
                    key=lambda each: each.due_ns[each.next_question],
                    default=None,
                )
                due_ns = asked.due_ns[asked.next_question] if asked is not None else _NEVER_NS
                if asked is not None and due_ns <= now_ns:
                    question = asked.next_question
                    asked.due_ns[question] = now_ns + self._pause_ns(asked, question)
                    return asked, question
                self._changed.wait(None if due_ns == _NEVER_NS else (due_ns - now_ns) / SECOND_NS)

    def _pause_ns(self, asked: Asked, question: str) -> int:
        if question == "module":
            return MODULE_EVERY_NS
        if question == "statistics":
            return COUNTING_EVERY_NS if asked.is_counted_by else self._rare_ns
        pause_ns, asked.pause_ns = asked.pause_ns, min(2 * asked.pause_ns, self._rare_ns)
        return pause_ns

    def _ask(self, asked: Asked, question: str) -> None:
        if not self._may_ask(asked.port.device):
            return
        before_ns = time.monotonic_ns()
        self._asking = asked.netdev, before_ns
        try:
            self._refuse_another(asked.netdev)
            {
                "reason": self._ask_reason,
                "statistics": self._ask_statistics,
                "module": self._ask_module,
            }[question](asked, before_ns)
        except OSError as error:
            self._refused(asked, question, error)
        else:
            asked.answered |= {question}
            asked.refused.pop(question, None)
        finally:
            self._asking = None

    def _refuse_another(self, netdev: str) -> None:
        """Of what has this name elsewhere nothing must be told."""
        known = netdev_identity(self._sysfs, netdev)
        if known is None or known != self._kernels(netdev):
            raise OSError(None, f"the kernel knows another {netdev} here")

    def _refused(self, asked: Asked, question: str, error: OSError) -> None:
        why = reason_of(error) if error.errno else str(error.args[1])
        asked.refused[question] = why
        asked.answered -= {question}
        with self._changed:
            again_ns = time.monotonic_ns() + AGAIN_AFTER_NS
            asked.due_ns[question] = max(asked.due_ns[question], again_ns)
        if question == "statistics":
            self._statistics[asked.port.key] = Statistics(why, time.monotonic_ns())

    def _ask_statistics(self, asked: Asked, before_ns: int) -> None:
        statistics = self._open_statistics(asked.netdev)
        try:
            self._statistics[asked.port.key] = Statistics(statistics.read(), before_ns)
        finally:
            statistics.close()

    def _ask_reason(self, asked: Asked, before_ns: int) -> None:
        state = self._kernel().link_state(asked.netdev)
        after_ns = time.monotonic_ns()
        is_fine = not asked.is_down if state.is_up is None else state.is_up
        if is_fine:
            asked.told_reason = None
            self._ask_no_more(asked, after_ns)
        elif state.reason is not None and state.reason != asked.told_reason:
            told = LinkReason(asked.port.key, state.reason, before_ns, after_ns, "ethtool")
            if self._tell(told):
                asked.told_reason = state.reason

    def _ask_no_more(self, asked: Asked, now_ns: int) -> None:
        """Why its link is down; unless it moved meanwhile."""
        with self._changed:
            if not asked.is_down and asked.due_ns["reason"] > now_ns:
                asked.due_ns["reason"] = _NEVER_NS

    def _ask_module(self, asked: Asked, before_ns: int) -> None:
        identity = self._kernel().module(asked.netdev)
        if identity is None:
            return
        module = (identity.vendor, identity.part, identity.serial)
        told = ModuleSeen(asked.port.key, *module, before_ns)
        if module != asked.told_module and self._tell(told):
            asked.told_module = module

    def _kernel(self) -> EthtoolNetlink:
        if self._ethtool is None:
            self._ethtool = self._open_ethtool()
        return self._ethtool
