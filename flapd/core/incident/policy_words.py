"""The policy in force in words, with who says so and what it makes of a flap."""

import math
from typing import Any

from flapd.core.incident.story import Story
from flapd.core.incident.words import seconds
from flapd.model.given import Given, Source

_SOURCES: dict[Source, str] = {
    "option": "asked for",
    "configuration": "configured",
    "environment": "its environment",
    "conf_file": "nccl.conf",
    "log": "its log",
    "dump": "its dump",
    "queue_pair": "its queue pairs",
    "scheduler": "the scheduler",
    "measured": "measured",
    "calibrated": "measured on this node",
    "version": "by its release",
    "preset": "assumed",
    "default": "assumed",
}


def policy_sentence(story: Story) -> str:
    inputs = story.scene.terms.inputs
    return (
        f"In force: NCCL_IB_TIMEOUT {_said(inputs.ib_timeout)}, "
        f"NCCL_IB_RETRY_CNT {_said(inputs.retry_cnt)}: {_transport(story)}; "
        f"{_watchdog(inputs.watchdog_seconds)}."
    )


def _said(given: Given[Any]) -> str:
    return f"{given.value} ({_SOURCES[given.source]})"


def _transport(story: Story) -> str:
    budget = story.scene.terms.budget
    if math.isinf(budget.nominal):
        return "the transport waits for ever, and sends nothing again"
    low = seconds(budget.low) if budget.low else "at once"
    retry = story.scene.terms.retry
    why = "as cards differ" if retry is None else retry.source
    return (
        f"the transport retries every {seconds(story.scene.terms.tick_seconds)} and gives up after "
        f"{seconds(budget.nominal)} ({low} to {seconds(budget.high)}, {why})"
    )


def _watchdog(given: Given[float]) -> str:
    if math.isinf(given.value):
        return "no watchdog ends the job"
    return f"the watchdog ends the job after {seconds(given.value)} ({_SOURCES[given.source]})"
