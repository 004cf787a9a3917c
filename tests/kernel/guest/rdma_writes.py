"""A program: RDMA writes from one device to another, one at a time, by two queue pairs.

The patient one tries for ever (retry_cnt 7, which rxe does not count); the hasty one is of a
short budget, about 1 s, and is left as it is once a write has failed.
"""

import sys
import time
from typing import Any, NamedTuple

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

from tests.kernel.guest.program import work

_ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
_IPV4_GID = 1
_BYTES = 1024
_PATIENT, _HASTY = (14, 7), (16, 3)
"""Local ack timeout, 4.096 us x 2^14 = 67 ms or 2^16 = 268 ms, and retry_cnt. Of less than a second
a machine has stood still for its host before a link went."""
_SLOW_NS = 150_000_000
_PAUSE_SECONDS = 0.02


class End:
    """One end of a connection."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.pd = PD(context)
        self.cq = CQ(context, 16)
        self.mr = MR(self.pd, _BYTES, _ACCESS)
        made = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(8, 8, 1, 1, 0))
        self.qp = QP(self.pd, made)

    def connect(self, other: "End", budget: tuple[int, int]) -> None:
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = _ACCESS
        attr.path_mtu, attr.min_rnr_timer = e.IBV_MTU_1024, 12
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn = other.qp.qp_num, 0, 0
        attr.timeout, attr.retry_cnt = budget
        attr.rnr_retry = 6
        route = GlobalRoute(dgid=other.context.query_gid(1, _IPV4_GID), sgid_index=_IPV4_GID)
        route.hop_limit = 64
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attr)


class Write(NamedTuple):
    """One that took long or failed."""

    begin_ns: int
    end_ns: int
    status: int


class Writer:
    """Has one write on its way at any time."""

    def __init__(self, near: Context, far: Context, budget: tuple[int, int]) -> None:
        self._near, self._far = End(near), End(far)
        self._near.connect(self._far, budget)
        self._far.connect(self._near, budget)
        self._begin_ns: int | None = None
        self.done = 0
        self.told: list[Write] = []

    @property
    def failed(self) -> bool:
        return bool(self.told and self.told[-1].status)

    def turn(self) -> None:
        if self.failed:
            return
        if self._begin_ns is None:
            self._post()
        count, completions = self._near.cq.poll(1)
        if count:
            self._complete(completions[0].status)

    def _post(self) -> None:
        near, far = self._near.mr, self._far.mr
        write = SendWR(
            opcode=e.IBV_WR_RDMA_WRITE,
            num_sge=1,
            sg=[SGE(near.buf, _BYTES, near.lkey)],
            send_flags=e.IBV_SEND_SIGNALED,
        )
        write.set_wr_rdma(far.rkey, far.buf)
        self._begin_ns = time.monotonic_ns()
        self._near.qp.post_send(write)

    def _complete(self, status: int) -> None:
        assert self._begin_ns is not None
        now_ns = time.monotonic_ns()
        if status or now_ns - self._begin_ns > _SLOW_NS:
            self.told.append(Write(self._begin_ns, now_ns, int(status)))
        self.done += 1
        self._begin_ns = None


def main() -> None:
    near, far = (Context(name=name) for name in sys.argv[1:3])
    writers = {"patient": Writer(near, far, _PATIENT), "hasty": Writer(near, far, _HASTY)}

    def turn() -> None:
        for writer in writers.values():
            writer.turn()
        time.sleep(_PAUSE_SECONDS)

    def told() -> dict[str, Any]:
        return {
            name: {"done": writer.done, "writes": writer.told} for name, writer in writers.items()
        }

    work(turn, told)


if __name__ == "__main__":
    main()
