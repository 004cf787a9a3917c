"""The settings in force as TOML, for somebody else to read: without secrets."""

import json
import re
from typing import Any

from flapd.config import Config

_SECRET_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")


def config_text(config: Config) -> str:
    """Every key, also those at their defaults; passwords in URLs left out."""
    lines = []
    for section in Config.__struct_fields__:
        settings = getattr(config, section)
        lines += ["", f"[{section}]"]
        lines += [_line(key, getattr(settings, key)) for key in type(settings).__struct_fields__]
    return "\n".join(lines[1:]) + "\n"


def _line(key: str, value: Any) -> str:
    if value is None or value == {}:
        return f"# {key}: none"
    return f"{key} = {_SECRET_IN_URL.sub('', _toml(value))}"


def _toml(value: Any) -> str:
    """Of strings, numbers and lists TOML is written as JSON is."""
    if isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value), ensure_ascii=False)
