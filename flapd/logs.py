"""The agent's own log: lines for people on a terminal, JSON for the journal."""

import logging
import sys
from typing import Literal

import structlog

Format = Literal["auto", "console", "json"]


def set_up_logging(level: str, form: Format) -> None:
    """To stderr, from `level` on; `auto` is console on a terminal, else JSON lines."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
            if console
            else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
