"""The configuration: every fault is found and says what would be right."""

from pathlib import Path

import pytest

from flapd.config import DEFAULT_PATH, Config, ConfigError, Fault, load_config
from flapd.model.duration import RIGHT_DURATION, parse_duration
from flapd.store.size import RIGHT_SIZE

LISTEN = (
    'an address and a port from 0 to 65535, such as "0.0.0.0:19315" or "[::]:19315", '
    'or "" for the Unix socket only'
)
LEVELS = 'one of "debug", "info", "warning", "error"'
NO_KEY = "there is no such key"
STRINGS = 'a list of strings, such as ["mlx5_*"]'


def faults_of(path: Path | None, environ: dict[str, str]) -> list[Fault]:
    with pytest.raises(ConfigError) as raised:
        load_config(path, environ)
    return raised.value.faults


def written(directory: Path, text: str) -> Path:
    path = directory / "flapd.toml"
    path.write_text(text)
    return path


def test_every_key_of_the_file_arrives(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        node.name = "node17"
        flap.drop_after = 300
        ports = { include = ["mlx5_*"], exclude = ["mlx5_9/1"] }
        http.listen = ""

        [paths]
        sysfs = "/a"
        proc = "/b"
        state = "/c"
        ring = "/d"
        socket = "/e"
        dev = "/f"

        [sampling]
        interval = "20ms"
        slow_interval = 0.5
        rare_interval = "1m"
        keep = "1h"
        black_box = "10s"

        [history]
        keep = "30d"
        keep_black_boxes = "7d"
        max_size = "500MB"

        [log]
        level = "debug"
        format = "json"
        """,
    )

    config = load_config(path, {})

    assert config.node.name == "node17"
    assert config.flap.drop_after == parse_duration("5m")
    assert (config.ports.include, config.ports.exclude) == (("mlx5_*",), ("mlx5_9/1",))
    assert config.http.listen == ""
    assert [getattr(config.paths, key) for key in config.paths.__struct_fields__] == [
        "/a",
        "/b",
        "/c",
        "/d",
        "/e",
        "/f",
    ]
    assert [str(getattr(config.sampling, key)) for key in config.sampling.__struct_fields__] == [
        "20ms",
        "500ms",
        "1m",
        "1h",
        "10s",
    ]
    assert [str(getattr(config.history, key)) for key in config.history.__struct_fields__] == [
        "30d",
        "7d",
        "500MB",
    ]
    assert (config.log.level, config.log.format) == ("debug", "json")


def test_an_empty_file_and_no_default_file_give_the_defaults(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, ""), {}) == Config()
    if not DEFAULT_PATH.exists():
        assert load_config(None, {}) == Config()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('sampling.interval = "5ms"', "at least 10ms and at most 10s"),
        ("sampling.interval = 11", "at least 10ms and at most 10s"),
        ('sampling.slow_interval = "61s"', "at most 60s"),
        ('sampling.slow_interval = "50ms"', "at least sampling.interval, which is 100ms"),
        ('sampling.rare_interval = "999ms"', "at least 1s and at most 1h"),
        ('sampling.keep = "25h"', "at least 1m and at most 24h"),
        ("sampling.keep = true", RIGHT_DURATION),
        ('sampling.black_box = "6m"', "at most 5m"),
        ('history.keep = "1h"', "at least 1d"),
        ("history.max_size = 1000", "at least 16MiB"),
        ('history.max_size = "2 gigs"', RIGHT_SIZE),
        ('sampling.keep = "1 fortnight"', RIGHT_DURATION),
        ("sampling.keep = nan", RIGHT_DURATION),
        ("sampling.keep = -1", RIGHT_DURATION),
        ("flap.drop_after = []", RIGHT_DURATION),
        ("flap.drop_after = 0", "at least 1s, or every flap would be a drop"),
        ("flap.burst_max = 0", "at least flap.merge_within, which is 2s"),
        ("flap.clear = 5000", "less than flap.suspect, which is 2000"),
        ("node.name = 3", "a name of 1 to 253 printable characters"),
        ('node.name = ""', "a name of 1 to 253 printable characters"),
        (
            'node.name = "a\\u001b[2J"',
            "a name of 1 to 253 printable characters, without control characters",
        ),
        ("paths.sysfs = 3", "a string"),
        ('paths.sysfs = ""', "a path"),
        ('paths.sysfs = "/a\\u0000"', "a string, without control characters"),
        ('ports.include = "mlx5_0"', STRINGS),
        ('ports.exclude = ["a", 3]', STRINGS),
        ('http.listen = "19315"', LISTEN),
        ('http.listen = "a:65536"', LISTEN),
        ('log.level = "loud"', 'one of "debug", "info", "warning", "error"'),
        ('log.format = "xml"', 'one of "auto", "console", "json"'),
        ("log.format = 2026-11-30", 'one of "auto", "console", "json"'),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    tmp_path: Path, text: str, fault: str
) -> None:
    key = text.partition(" = ")[0]

    (found,) = faults_of(written(tmp_path, text), {})

    assert (found.key, found.right) == (key, fault)
    assert str(found) == f"{key} = {found.value}: {fault}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sampling.intervall = 3", "there is no such key; did you mean sampling.interval?"),
        ("flaps.drop_after = 3", "there is no such key; did you mean flap?"),
        ("sampling.colour = 3", "there is no such key"),
        ("zzz = 3", "there is no such key"),
        ("sampling = 3", "a table, [sampling]"),
    ],
)
def test_an_unknown_key_is_named_with_a_close_one(tmp_path: Path, text: str, line: str) -> None:
    (found,) = faults_of(written(tmp_path, text), {})

    assert text.startswith(found.key)
    assert found.right == line


def test_all_faults_are_found_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, 'log.level = 1\nnode.nam = "x"\nhttp.listen = "x"\nwhat = 1')

    found = faults_of(path, {"FLAPD_LOG__FORMAT": "xml", "FLAPD_NO__KEY": "1"})

    assert {fault.key for fault in found} == {
        "log.level",
        "node.nam",
        "http.listen",
        "what",
        "log.format",
        "FLAPD_NO__KEY",
    }


def test_a_long_value_is_shown_in_part(tmp_path: Path) -> None:
    (found,) = faults_of(written(tmp_path, f'log.level = "{"x" * 5000}"'), {})

    assert found.value is not None
    assert len(found.value) < 200


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a = \xff", "not UTF-8 at byte 4"),
        (b"[node\nname = 3", "not TOML: Expected ']'"),
        (b"a = " + b"9" * 5000, "not TOML: a number has too many digits"),
        (b"a = " + b"[" * 100_000, "not TOML: nested too deeply"),
        (b"#" * (1 << 20) + b"\n", "larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "flapd.toml"
    path.write_bytes(content)

    (found,) = faults_of(path, {})

    assert str(found).startswith(f"{path}: {why}")


def test_where_the_toml_is_wrong_is_told(tmp_path: Path) -> None:
    (found,) = faults_of(written(tmp_path, '[node]\nname = "x" y'), {})

    assert "line 2, column" in found.right


def test_a_named_file_must_be_there_and_readable(tmp_path: Path) -> None:
    (missing,) = faults_of(tmp_path / "none.toml", {})
    (directory,) = faults_of(tmp_path, {})

    assert str(missing) == f"{tmp_path}/none.toml: there is no such file"
    assert directory.right == "cannot be read: Is a directory"


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'log.level = "error"\nsampling.keep = "not used"')

    config = load_config(
        path,
        {
            "FLAPD_LOG__LEVEL": "debug",
            "FLAPD_SAMPLING__KEEP": "20m",
            "FLAPD_SAMPLING__SLOW_INTERVAL": "2",
            "FLAPD_PORTS__INCLUDE": '["mlx5_0/1", "mlx5_1/1"]',
            "FLAPD_HTTP__LISTEN": "",
            "FLAPD_NODE__NAME": "2026",
            "FLAPD_TESTS": "not a setting",
            "PATH": "/bin",
        },
    )

    assert config.log.level == "debug"
    assert config.sampling.keep == parse_duration("20m")
    assert config.sampling.slow_interval == parse_duration("2s")
    assert config.ports.include == ("mlx5_0/1", "mlx5_1/1")
    assert config.http.listen == ""
    assert config.node.name == "2026"


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        (
            "FLAPD_LOG__LEVEL",
            "loud",
            f'log.level = "loud": {LEVELS} (set by FLAPD_LOG__LEVEL)',
        ),
        (
            "FLAPD_SAMPLING__INTERVALL",
            "1s",
            f'FLAPD_SAMPLING__INTERVALL = "1s": {NO_KEY}; did you mean FLAPD_SAMPLING__INTERVAL?',
        ),
        ("FLAPD_NO__WAY", "1", 'FLAPD_NO__WAY = "1": there is no such key'),
        (
            "FLAPD_PORTS__INCLUDE",
            '"a"\nx = 1',
            f'ports.include = "\\"a\\"\\nx = 1": {STRINGS} (set by FLAPD_PORTS__INCLUDE)',
        ),
    ],
)
def test_a_wrong_variable_is_named(variable: str, value: str, line: str) -> None:
    (found,) = faults_of(None, {variable: value})

    assert str(found) == line


def test_a_socket_path_longer_than_the_kernel_takes_is_refused() -> None:
    (found,) = faults_of(None, {"FLAPD_PATHS__SOCKET": "/" + "x" * 107})

    assert found.key == "paths.socket"
    assert "at most 107 bytes" in found.right
    assert load_config(None, {"FLAPD_PATHS__SOCKET": "/" + "x" * 106})


def test_a_ring_too_short_for_a_black_box_is_refused() -> None:
    environ = {"FLAPD_SAMPLING__KEEP": "1m", "FLAPD_SAMPLING__BLACK_BOX": "31s"}

    (found,) = faults_of(None, environ)

    assert str(found) == (
        'sampling.keep = "1m": at least 62s, twice sampling.black_box, which is taken from it '
        "(set by FLAPD_SAMPLING__KEEP)"
    )


@pytest.mark.parametrize(
    ("variable", "value", "fault"),
    [
        (
            "FLAPD_SAMPLING__INTERVAL",
            "1s",
            'sampling.slow_interval = "500ms": at least sampling.interval, which is 1s',
        ),
        (
            "FLAPD_FLAP__MERGE_WITHIN",
            "2m",
            'flap.burst_max = "1m": at least flap.merge_within, which is 2m',
        ),
        (
            "FLAPD_FLAP__SUSPECT",
            "750",
            "flap.clear = 750.0: less than flap.suspect, which is 750",
        ),
    ],
)
def test_a_default_that_does_not_go_with_what_is_written_is_named(
    variable: str, value: str, fault: str
) -> None:
    (found,) = faults_of(None, {variable: value})

    assert str(found) == fault


def test_where_no_downs_are_merged_a_burst_may_be_none() -> None:
    environ = {"FLAPD_FLAP__MERGE_WITHIN": "0", "FLAPD_FLAP__BURST_MAX": "0"}

    assert load_config(None, environ).flap.burst_max == parse_duration(0)


COUNTERS = '"errors", "all" or a list of globs such as ["link_downed", "*retrans*"]'


@pytest.mark.parametrize(
    ("written_as", "counters"),
    [
        ('"errors"', "errors"),
        ('"all"', "all"),
        ('["link_downed", "*retrans*"]', ("link_downed", "*retrans*")),
        ("[]", ()),
    ],
)
def test_counters_are_errors_or_all_or_those_that_match(
    tmp_path: Path, written_as: str, counters: object
) -> None:
    path = written(tmp_path, f"metrics.counters = {written_as}")

    assert load_config(path, {}).metrics.counters == counters
    assert load_config(None, {"FLAPD_METRICS__COUNTERS": written_as}).metrics.counters == counters


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('metrics.counters = "some"', Fault("metrics.counters", '"some"', COUNTERS)),
        ("metrics.counters = 3", Fault("metrics.counters", "3", COUNTERS)),
        ("ports.expect = -1", Fault("ports.expect", "-1", "a number of ports from 0 to 1024")),
        ("ports.expect = true", Fault("ports.expect", "true", "a number of ports from 0 to 1024")),
        (
            "ports.expect_rate_gbps = 0",
            Fault("ports.expect_rate_gbps", "0", "a rate in Gb/s, such as 400"),
        ),
        (
            'ports.virtual_functions = "no"',
            Fault("ports.virtual_functions", '"no"', "true or false"),
        ),
    ],
)
def test_what_is_expected_of_ports_and_counters_says_what_would_be_right(
    tmp_path: Path, line: str, fault: Fault
) -> None:
    assert faults_of(written(tmp_path, line), {}) == [fault]


def test_what_a_node_should_have_is_not_said_by_default(tmp_path: Path) -> None:
    ports = load_config(written(tmp_path, ""), {}).ports

    assert (ports.expect, ports.expect_rate_gbps, ports.virtual_functions) == (None, None, False)
    path = written(tmp_path, "ports = { expect = 8, expect_rate_gbps = 400 }")
    assert load_config(path, {}).ports.expect_rate_gbps == 400
