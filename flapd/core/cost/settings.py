"""JobSettings, CostSettings: what cannot be found out about jobs, and what a GPU costs."""

from typing import Annotated, Literal

import msgspec

from flapd.model.duration import Duration
from flapd.model.job import JobKind

_TIMEOUT = msgspec.Meta(description="a whole number from 0 to 64; 0 and 32 or more: for ever")
_RETRIES = msgspec.Meta(description="a whole number from 0 to 7")
_GPUS = msgspec.Meta(description="a number of GPUs, 1 or more")
_FLOOR = msgspec.Meta(description="a whole number from 0 to 31; 0: no floor")
_FACTOR = msgspec.Meta(description="a number above 0, up to 100, such as 1.1")
_A_SECOND_OR_MORE = msgspec.Meta(extra={"at_least": "1s"})

_UpTo7 = Annotated[int, msgspec.Meta(ge=0, le=7)]
_UpTo31 = Annotated[int, msgspec.Meta(ge=0, le=31)]
_UpTo64 = Annotated[int, msgspec.Meta(ge=0, le=64)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
_Positive = Annotated[float, msgspec.Meta(gt=0, le=100)]


class JobSettings(msgspec.Struct, frozen=True):
    """None = what is found out about a job, else the model's default."""

    world_size: Annotated[_Count | None, _GPUS] = None
    kind: JobKind | None = None
    ib_timeout: Annotated[_UpTo64 | None, _TIMEOUT] = None
    ib_retry_cnt: Annotated[_UpTo7 | None, _RETRIES] = None
    watchdog: Annotated[Duration | None, _A_SECOND_OR_MORE] = None
    restart: Duration | None = None
    propagation: Duration | None = None
    checkpoint_interval: Annotated[Duration | None, _A_SECOND_OR_MORE] = None
    slack: Duration | None = None
    retry_schedule: Literal["auto", "fixed", "adaptive"] = "auto"
    timer_floor: Annotated[_UpTo31 | None, _FLOOR] = None
    budget_factor: Annotated[_Positive | None, _FACTOR] = None


class CostSettings(msgspec.Struct, frozen=True):
    price_per_gpu_hour: Annotated[
        float,
        msgspec.Meta(ge=0, le=1_000_000, description="a price from 0 to 1000000, such as 2.5"),
    ] = 2.50
    currency: Annotated[
        str, msgspec.Meta(min_length=1, max_length=8, description='a currency, such as "USD"')
    ] = "USD"
