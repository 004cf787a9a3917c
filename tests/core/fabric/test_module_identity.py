import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fabric.module_identity import ModuleIdentity, has_identity_above, identity_of


def half(identifier: int, texts: dict[int, bytes]) -> bytes:
    raw = bytearray(128)
    raw[0] = identifier
    for at, text in texts.items():
        raw[at : at + 16] = text.ljust(16)
    return bytes(raw)


MAKER = ModuleIdentity("NVIDIA", "MMS4X00-NS", "MT2347FT00123")
OLD = {20: b"NVIDIA", 40: b"MMS4X00-NS", 68: b"MT2347FT00123"}
CMIS = {1: b"NVIDIA", 20: b"MMS4X00-NS", 38: b"MT2347FT00123"}


@pytest.mark.parametrize(
    ("identifier", "lower", "upper"),
    [(0x03, OLD, {}), (0x0D, {}, OLD), (0x11, {}, OLD), (0x18, {}, CMIS), (0x19, {}, CMIS)],
    ids=["SFP", "QSFP+", "QSFP28", "QSFP-DD", "OSFP"],
)
def test_each_kind_of_module_names_its_maker(
    identifier: int, lower: dict[int, bytes], upper: dict[int, bytes]
) -> None:
    below, above = half(identifier, lower), half(0, upper)

    assert identity_of(below, above if has_identity_above(below) else b"") == MAKER


def test_what_is_blank_or_no_text_is_not_known() -> None:
    maker = half(0, {1: b"", 20: b"MMS4X00-NS", 38: b"\x01\x02"})

    assert identity_of(half(0x18, {}), maker) == ModuleIdentity(None, "MMS4X00-NS", None)


@pytest.mark.parametrize("lower", [b"", half(0x00, OLD), half(0x77, OLD), half(0x03, OLD)[:100]])
def test_of_an_unknown_or_unfinished_module_nothing_is_said(lower: bytes) -> None:
    assert identity_of(lower, half(0, OLD)) is None


@given(st.binary(max_size=128), st.binary(max_size=128))
def test_any_bytes_are_a_module_or_none(lower: bytes, upper: bytes) -> None:
    identity_of(lower, upper)
