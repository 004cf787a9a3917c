"""Policy: the names that a job's policy may have, and what each is."""

from collections.abc import Mapping

POLICY_TYPES: Mapping[str, type] = {
    "gpus": int,
    "down_seconds": float,
    "usable_after_seconds": float,
    "ib_timeout": int,
    "retry_cnt": int,
    "timer_floor": int,
    "extra_tries": int,
    "budget_factor": float,
    "schedule": str,
    "hang": bool,
    "coordinated": bool,
    "failover": bool,
    "failover_slowdown": float,
    "slack_seconds": float,
    "watchdog_seconds": float,
    "heartbeat_seconds": float,
    "error_handling": int,
    "enqueued_seconds": float,
    "poll_seconds": float,
    "propagation_seconds": float,
    "restart_seconds": float,
    "checkpoint_age_seconds": float,
    "price_per_gpu_hour": float,
}
"""Those of core/cost/inputs.py, with which they are put together, and of core/job/policy.py."""
