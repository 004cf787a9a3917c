"""`flapd check-config`: is the configuration right, and if not, what would be."""

import os
import sys
from pathlib import Path

from flapd.cli.text import printable
from flapd.config import DEFAULT_PATH, ConfigError, load_config


def check_config(path: Path | None) -> int:
    """0 where it is right, 2 with each fault on a line."""
    try:
        load_config(path, os.environ)
    except ConfigError as error:
        for fault in error.faults:
            print(printable(str(fault)), file=sys.stderr)
        return 2
    chosen = path or DEFAULT_PATH
    is_default = path is None and not chosen.exists()
    print(f"ok: {chosen}" + (" does not exist, all defaults hold" if is_default else ""))
    return 0
