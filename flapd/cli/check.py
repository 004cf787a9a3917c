"""`flapd check-config`: is the configuration right, and if not, what would be."""

import os
import sys
from pathlib import Path

import msgspec

from flapd.cli.output import print_json
from flapd.cli.text import printable
from flapd.config import DEFAULT_PATH, ConfigError, Fault, load_config
from flapd.serve.credentials import credential_faults


def check_config(path: Path | None, as_json: bool) -> int:
    """0 where it is right, 2 with each fault on a line."""
    chosen = path or DEFAULT_PATH
    faults = _faults(path)
    if as_json:
        print_json(msgspec.json.encode({"path": str(chosen), "faults": faults}))
        return 2 if faults else 0
    for fault in faults:
        print(printable(str(fault)), file=sys.stderr)
    if faults:
        return 2
    is_default = path is None and not chosen.exists()
    print(f"ok: {chosen}" + (" does not exist, all defaults hold" if is_default else ""))
    return 0


def _faults(path: Path | None) -> list[Fault]:
    try:
        config = load_config(path, os.environ)
    except ConfigError as error:
        return error.faults
    return [
        Fault(f"http.{key}", f'"{value}"', right)
        for key, value, right in credential_faults(config.http)
    ]
