"""A dump is read as plain data; what is more than that is refused before it does anything."""

import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.job.dump import dump_of
from flapd.model.errors import FlapdError
from flapd.sources.dumps import plain_data
from tests.core.job.test_dump import content, entry

KEYS = st.text().filter(lambda key: key != "frames")
"""Those are left out."""
DUMP = content(entry(6), entry(7, "started", duration_ms=1.5, thread_id=2**40))


def as_torch_writes(value: Any) -> bytes:
    """Protocol 2, and of its opcodes only those of PyTorch's own pickler."""
    return b"\x80\x02" + _written(value) + b"."


def _written(value: Any) -> bytes:
    if isinstance(value, dict):
        pairs = b"".join(_written(key) + _written(item) for key, item in value.items())
        return b"}(" + pairs + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(_written, value)) + b"e"
    if isinstance(value, tuple):
        return b"".join(map(_written, value)) + b"\x86"
    # Python writes these as PyTorch does.
    return pickle.dumps(value, protocol=2)[2:-1]


@pytest.mark.parametrize(
    "written",
    [as_torch_writes(DUMP), msgspec.json.encode(DUMP), b" \n" + msgspec.json.encode(DUMP)],
)
def test_both_formats_are_read(written: bytes) -> None:
    assert dump_of(plain_data(written)) == dump_of(DUMP)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**40), 2**40)
        | st.text()
        | st.floats(allow_nan=False),
        lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner, inner),
    )
)
def test_plain_data_comes_back_as_it_was_written(value: Any) -> None:
    assert plain_data(as_torch_writes(value)) == value


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/flapd-was-here",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_that_a_file_names_is_run(protocol: int) -> None:
    with pytest.raises(FlapdError, match="holds the opcode"):
        plain_data(pickle.dumps(Evil(), protocol))
    assert not Path("/tmp/flapd-was-here").exists()


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x02" + b"}" * 4_000_000 + b".",
        b"[" + b"{}," * 2_000_000 + b"{}]",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x02" + b"N" * 100_000 + b"\x86" * 99_999 + b"}(" + b"u.",
        b"[" * 1_000_000,
        b"\x80\x02}(NNu.",
        b"\x80\x02K\x01K\x02\x86K\x03\x86.",
        b"\x80\x02" + b"K\x01" + b"K\x02\x86" * 500_000 + b".",
        b"\x80\x02h\x05.",
        b"\x80\x02.",
        b"\x80\x02](u.",
        b"",
        b"{",
        b"\xff\xfe",
    ],
)
def test_a_bomb_or_a_damaged_dump_is_told(bomb: bytes) -> None:
    with pytest.raises(FlapdError):
        dump_of(plain_data(bomb))


def test_a_large_number_in_the_memo_takes_no_room() -> None:
    assert plain_data(b"\x80\x02]r\xff\xff\xff\xff.") == []


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_told(junk: bytes) -> None:
    for attempt in (junk, b"\x80\x02" + junk, b"{" + junk):
        try:
            plain_data(attempt)
        except FlapdError:
            continue


@given(st.integers(0, len(as_torch_writes(DUMP)) - 1), st.integers(0, 255))
def test_a_dump_with_one_wrong_byte_is_read_or_told(place: int, wrong: int) -> None:
    written = bytearray(as_torch_writes(DUMP))
    written[place] = wrong
    try:
        dump_of(plain_data(bytes(written)))
    except FlapdError:
        return


def test_the_dumps_of_this_test_use_no_other_opcodes_than_pytorch() -> None:
    names = {opcode.name for opcode, _, _ in pickletools.genops(as_torch_writes(DUMP))}

    assert names <= {
        "PROTO", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "SETITEMS", "APPENDS", "BINUNICODE",
        "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE",
        "TUPLE2", "BINPUT", "BINGET",
    }  # fmt: skip


@pytest.mark.parametrize("place", ["key", "value"])
def test_a_string_that_is_no_text_is_damage(place: str) -> None:
    """Half a surrogate pair: found by tests/fuzz, it ended the reader at each look."""
    strange = content(entry(7, "started", profiling_name="nccl:xyz"))
    written = as_torch_writes(strange)
    text = b"collective_seq_id" if place == "key" else b"nccl:xyz"
    assert text in written
    broken = written.replace(text, text[:-3] + b"\xed\xa0\x80")

    with pytest.raises(FlapdError, match="damaged"):
        plain_data(broken)


def test_what_is_refused_is_not_even_read() -> None:
    """Python warns of what stands in an old string; found by tests/fuzz."""
    with pytest.raises(FlapdError, match="opcode STRING"):
        plain_data(b"\x80\x02S'\\e'\n.")
