"""Config: every room's settings in one, from a TOML file and the environment."""

import difflib
import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fabric.settings import FlapSettings
from flapd.fleet.settings import FleetSettings, HubSettings
from flapd.limits import beyond_limits
from flapd.model.duration import Duration, parse_duration
from flapd.model.errors import FlapdError
from flapd.serve.settings import HttpSettings, MetricsSettings
from flapd.sources.settings import (
    DumpsSettings,
    JobsSettings,
    LogsSettings,
    PathsSettings,
    PortsSettings,
    SamplingSettings,
    SourcesSettings,
)
from flapd.store.settings import HistorySettings
from flapd.store.size import Size, parse_size

DEFAULT_PATH = Path("/etc/flapd/flapd.toml")
LARGEST_BYTES = 1 << 20

_PREFIX = "FLAPD_"
_NO_KEY = "there is no such key"
_CLOSE = 0.8
_LONGEST_SHOWN = 120


class NodeSettings(msgspec.Struct, frozen=True):
    name: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=253, description="a name of 1 to 253 printable characters"
        ),
    ] = msgspec.field(default_factory=socket.gethostname)


class LogSettings(msgspec.Struct, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class Config(msgspec.Struct, frozen=True):
    """Every setting; the defaults are those of an empty file."""

    node: NodeSettings = msgspec.field(default_factory=NodeSettings)
    paths: PathsSettings = PathsSettings()
    sampling: SamplingSettings = SamplingSettings()
    ports: PortsSettings = PortsSettings()
    sources: SourcesSettings = SourcesSettings()
    flap: FlapSettings = FlapSettings()
    logs: LogsSettings = LogsSettings()
    dumps: DumpsSettings = DumpsSettings()
    jobs: JobsSettings = JobsSettings()
    job: JobSettings = JobSettings()
    cost: CostSettings = CostSettings()
    history: HistorySettings = HistorySettings()
    http: HttpSettings = HttpSettings()
    metrics: MetricsSettings = MetricsSettings()
    fleet: FleetSettings = FleetSettings()
    hub: HubSettings = HubSettings()
    log: LogSettings = LogSettings()


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with a configuration: where, what was written there, what would be right."""

    key: str
    value: str | None
    """As written; None where it is not a value that is wrong."""
    right: str

    def __str__(self) -> str:
        written = "" if self.value is None else f" = {self.value}"
        return f"{self.key}{written}: {self.right}"


class ConfigError(FlapdError):
    """The configuration cannot be used; carries every fault found, never an empty list."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class _Written(NamedTuple):
    """A value and the environment variable it came from; None = the file."""

    value: Any
    variable: str | None = None

    def fault(self, key: str, right: str) -> Fault:
        origin = f" (set by {self.variable})" if self.variable else ""
        return Fault(key, _as_written(self.value), right + origin)


class _Refused(NamedTuple):
    right: str


_Key = tuple[str, str]


def _declared(section: type) -> dict[str, Any]:
    return get_type_hints(section, include_extras=True)


_SECTIONS: dict[str, type] = get_type_hints(Config)
_TYPES: dict[_Key, Any] = {
    (section, key): declared
    for section, struct in _SECTIONS.items()
    for key, declared in _declared(struct).items()
}


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration in `path` and `environ`; None = the default file, which may be missing.

    Raises ConfigError with all faults, not only the first.
    """
    faults: list[Fault] = []
    written = _from_file(_read(path), faults)
    written.update(_from_environment(environ, faults))
    config = _compose(written, faults)
    faults.extend(_beyond_limits(config, written))
    if faults:
        raise ConfigError(faults)
    return config


def _compose(written: Mapping[_Key, _Written], faults: list[Fault]) -> Config:
    """The defaults, with what was written where it is right."""
    sections: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    for (section, key), entry in written.items():
        converted = _convert(entry.value, _TYPES[section, key])
        if isinstance(converted, _Refused):
            faults.append(entry.fault(f"{section}.{key}", converted.right))
        else:
            sections[section][key] = converted
    return Config(**{name: _SECTIONS[name](**values) for name, values in sections.items()})


def _read(path: Path | None) -> dict[str, Any]:
    chosen = path or DEFAULT_PATH
    try:
        with open(chosen, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unusable(chosen, "no regular file")
            raw = file.read(LARGEST_BYTES + 1)
        if len(raw) > LARGEST_BYTES:
            raise _unusable(chosen, "larger than 1 MiB, which no configuration is")
        return _decode(raw.decode())
    except FileNotFoundError:
        if path is None:
            return {}
        raise _unusable(chosen, "there is no such file") from None
    except OSError as error:
        raise _unusable(chosen, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _unusable(chosen, f"not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise _unusable(chosen, f"not TOML: {error}") from None


def _open_at_once(path: str, flags: int) -> int:
    """A FIFO with nobody at its other end must not keep an agent that reloads."""
    return os.open(path, flags | os.O_NONBLOCK)


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError([Fault(str(path), None, why)])


def _decode(text: str) -> dict[str, Any]:
    """A TOML document; raises ValueError with line and column."""
    try:
        document: dict[str, Any] = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    except ValueError:  # of int(), which tomllib lets through
        raise ValueError("a number has too many digits") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return document


def _from_file(document: dict[str, Any], faults: list[Fault]) -> dict[_Key, _Written]:
    found: dict[_Key, _Written] = {}
    for section, table in document.items():
        if section not in _SECTIONS:
            faults.append(_unknown(section, _SECTIONS))
        elif not isinstance(table, dict):
            faults.append(_Written(table).fault(section, f"a table, [{section}]"))
        else:
            for key, value in table.items():
                if (section, key) in _TYPES:
                    found[section, key] = _Written(value)
                else:
                    faults.append(_unknown(f"{section}.{key}", map(".".join, _TYPES), value))
    return found


def _from_environment(
    environ: Mapping[str, str], faults: list[Fault]
) -> Iterator[tuple[_Key, _Written]]:
    for variable in sorted(environ):
        section, separator, key = variable.removeprefix(_PREFIX).lower().partition("__")
        if not variable.startswith(_PREFIX) or not separator:
            continue
        if (section, key) in _TYPES:
            value = _from_text(environ[variable], _TYPES[section, key])
            yield (section, key), _Written(value, variable)
        else:
            faults.append(_unknown_variable(variable, environ[variable]))


def _unknown_variable(variable: str, value: str) -> Fault:
    known = [f"{section}__{key}".upper() for section, key in _TYPES]
    near = _near(variable.removeprefix(_PREFIX).upper(), known)
    hint = f"; did you mean {_PREFIX}{near}?" if near else ""
    return Fault(variable, _as_written(value), _NO_KEY + hint)


def _from_text(text: str, declared: Any) -> Any:
    """A TOML value where the text is one; a wanted string stays text, also where it is `123`."""
    try:
        document = _decode(f"value = {text}")
    except ValueError:
        return text
    value = document.pop("value")
    if document or (_bare(declared) is str and not isinstance(value, str)):
        return text
    return value


def _unknown(key: str, known: Iterable[str], value: Any = None) -> Fault:
    near = _near(key, known)
    hint = f"; did you mean {near}?" if near else ""
    return Fault(key, None if value is None else _as_written(value), _NO_KEY + hint)


def _near(key: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(key, list(known), n=1, cutoff=_CLOSE)), None)


def _as_written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _bare(declared: Any) -> Any:
    """Without what is only said about the type, and without None, which TOML cannot write."""
    bare = get_args(declared)[0] if get_origin(declared) is Annotated else declared
    kinds = get_args(bare)
    if NoneType not in kinds:
        return bare
    return next(_bare(kind) for kind in kinds if kind is not NoneType)


def _meta(declared: Any) -> msgspec.Meta:
    metadata = getattr(declared, "__metadata__", ())
    return next((meta for meta in metadata if isinstance(meta, msgspec.Meta)), msgspec.Meta())


def _convert(value: Any, declared: Any) -> Any:
    """The value as its field declares it, or _Refused with what would be right."""
    try:
        parse = _PARSERS.get(_bare(declared))
        if parse is not None:
            return _in_range(value, parse, _meta(declared).extra or {})
        converted = msgspec.convert(value, declared)
    except msgspec.ValidationError:
        return _Refused(_right(declared))
    except ValueError as error:
        return _Refused(str(error))
    if not _printable(converted):
        return _Refused(f"{_right(declared)}, without control characters")
    return converted


def _printable(value: Any) -> bool:
    texts = value if isinstance(value, tuple) else (value,)
    return all(text.isprintable() for text in texts if isinstance(text, str))


_PARSERS: dict[Any, Callable[[Any], Any]] = {Duration: parse_duration, Size: parse_size}


def _in_range(raw: Any, parse: Callable[[Any], Any], bounds: Mapping[str, str]) -> Any:
    """Within `at_least` and `at_most`, which stand beside the field that has them."""
    value = parse(raw)
    low, high = (bounds.get(name) for name in ("at_least", "at_most"))
    if (low and value < parse(low)) or (high and value > parse(high)):
        sides = (f"at least {low}" if low else "", f"at most {high}" if high else "")
        raise ValueError(" and ".join(filter(None, sides)))
    return value


_RIGHT_BY_TYPE = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


def _right(declared: Any) -> str:
    described = _meta(declared).description
    if described:
        return described
    bare = _bare(declared)
    if get_origin(bare) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in get_args(bare))
    return _RIGHT_BY_TYPE.get(bare, 'a list of strings, such as ["mlx5_*"]')


def _beyond_limits(config: Config, written: Mapping[_Key, _Written]) -> Iterator[Fault]:
    """Faults of what is written and of defaults that do not go with it."""
    for section, key, right in beyond_limits(
        config.paths, config.sampling, config.flap, config.http
    ):
        default = _Written(getattr(getattr(config, section), key))
        yield written.get((section, key), default).fault(f"{section}.{key}", right)
