import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fabric.parse import (
    UnreadableError,
    parse_flags,
    parse_number,
    parse_rate,
    parse_state,
    parser_of,
)


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b"0\n", 0), (b"255\n", 255), (b"18446744073709551615\n", 2**64 - 1), (b"7", 7)],
)
def test_a_counter_is_a_decimal_number(raw: bytes, value: int) -> None:
    assert parse_number(raw) == value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"N/A (no PMA)\n", "no PMA"),
        (b"", "not a number: ''"),
        (b"-1\n", "not a number: '-1\\n'"),
        (b"18446744073709551616\n", "more than 64 bits: '18446744073709551616\\n'"),
        (b"\xff" * 4000, "not a number: " + repr("\N{REPLACEMENT CHARACTER}" * 24)),
        (b"\xd9\xa3\n", "not a number: " + repr("\N{REPLACEMENT CHARACTER}" * 2 + "\n")),
    ],
)
def test_what_is_no_counter_says_what_it_is(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=r".") as failure:
        parse_number(raw)

    assert str(failure.value) == reason


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        (b"4: ACTIVE\n", 4),
        (b"1: DOWN\n", 1),
        (b"5: LinkUp\n", 5),
        (b"6: LinkErrorRecovery\n", 6),
        (b"9: <unknown>\n", 9),
    ],
)
def test_a_state_is_the_number_before_its_name(raw: bytes, state: int) -> None:
    assert parse_state(raw) == state


@pytest.mark.parametrize(
    ("raw", "mbps", "lanes"),
    [
        (b"400 Gb/sec (4X NDR)\n", 400_000, 4),
        (b"2.5 Gb/sec (1X SDR)\n", 2_500, 1),
        (b"10 Gb/sec (4X)\n", 10_000, 4),
        (b"10 Gb/sec (1X FDR10)\n", 10_000, 1),
    ],
)
def test_a_rate_has_speed_and_lanes(raw: bytes, mbps: int, lanes: int) -> None:
    assert parse_rate(raw) == {"rate_mbps": mbps, "width_lanes": lanes}


@pytest.mark.parametrize(
    ("raw", "flags"), [(b"0x1003\n", 0x1003), (b"0x1002\n", 0x1002), (b"0x0", 0)]
)
def test_flags_of_a_netdev_are_hexadecimal(raw: bytes, flags: int) -> None:
    assert parse_flags(raw) == flags
    assert parser_of("net/flags")(raw) == {"net/flags": flags}


@pytest.mark.parametrize("raw", [b"1003\n", b"0x\n", b"0x123456789\n", b"", b"0xZZ\n"])
def test_what_are_no_flags_says_so(raw: bytes) -> None:
    with pytest.raises(UnreadableError, match="not flags"):
        parse_flags(raw)


@given(
    st.sampled_from(["state", "phys_state", "rate", "counters/x", "net/flags"]),
    st.binary(max_size=200),
)
def test_no_content_breaks_a_parser(name: str, raw: bytes) -> None:
    values: dict[str, int] = {}
    with contextlib.suppress(UnreadableError):
        values = parser_of(name)(raw)

    assert all(0 <= value < 2**64 for value in values.values())


@given(st.integers(0, 2**64 - 1))
def test_every_counter_value_survives(value: int) -> None:
    assert parse_number(b"%d\n" % value) == value
