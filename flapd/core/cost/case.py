"""Case: one flap and the policy that it met, every value taken as certain."""

import msgspec

from flapd.core.cost.timer import Schedule, Timer


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the price of one flap is made of."""

    gpus: int
    """All that stand still: a collective blocks every rank, not those behind the link."""
    down_seconds: float
    usable_after_seconds: float = 0.0
    """From the link's up until traffic can pass: subnet manager, addresses, routes."""
    ib_timeout: int = 20
    retry_cnt: int = 7
    timer_floor: int = 0
    extra_tries: int = 0
    budget_factor: float = 1.0
    schedule: Schedule = "fixed"
    hang: bool = False
    """The transport never tells: nothing retransmits, nothing fails."""
    coordinated: bool = True
    """An error on one rank ends the whole job."""
    failover: bool = False
    """NCCL goes on with another port after the error (2.29.7 and later, off by default)."""
    failover_slowdown: float = 0.0
    """Share of its speed that the job loses while it is one port short."""
    slack_seconds: float = 0.0
    """A transfer may be this late before the step gets longer."""
    watchdog_seconds: float = 600.0
    enqueued_seconds: float = 0.0
    """From the enqueue of the blocked collective, where the watchdog's time begins, to the flap."""
    poll_seconds: float = 0.1
    propagation_seconds: float = 15.0
    """From the error on one rank until the whole job is being torn down."""
    restart_seconds: float = 300.0
    checkpoint_age_seconds: float = 900.0
    """Work to do again."""
    price_per_gpu_hour: float = 2.5

    @property
    def timer(self) -> Timer:
        return Timer(
            ib_timeout=self.ib_timeout,
            retry_cnt=self.retry_cnt,
            floor=self.timer_floor,
            extra_tries=self.extra_tries,
            budget_factor=self.budget_factor,
            schedule=self.schedule,
        )

    @property
    def pathless_seconds(self) -> float:
        """D: how long there was no path."""
        return self.down_seconds + self.usable_after_seconds

    @property
    def patience_seconds(self) -> float:
        """From the flap until the watchdog's timeout."""
        return max(0.0, self.watchdog_seconds - self.enqueued_seconds)
