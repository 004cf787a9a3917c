"""Reading a flight recorder's dump, which anybody may have written, into plain data.

PyTorch writes JSON, or pickle protocol 2 without a single global
(torch/csrc/jit/serialization/pickler.cpp). Unpickling runs whatever code a file names; so this
knows the few opcodes that build plain data and no other, and is held to a bound.
"""

import pickletools
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import msgspec

from flapd.model.errors import FlapdError

LARGEST_FILE_BYTES = 24 * 1024 * 1024
_MOST_ROOM = 76 * 1024 * 1024
"""For what is held, by a rough count; 20,000 entries, the largest buffer in use, are most of it."""
_MOST_COMMAS = 600_000
_MOST_STACKED = 1_000_000
_MOST_OBJECTS = 110_000
"""Of JSON, which is taken apart at once."""
_STACK = "frames"
"""Of each entry: most of what a dump holds, and nobody asks for it."""
_OBJECT, _SLOT, _DICT_ITEM, _CHARACTER = 72, 16, 40, 4
"""Bytes that CPython takes, at most, for a small object, a place in a list, and so on."""

_BY_CODE = {one.code.encode("latin-1"): one for one in pickletools.opcodes}
_NOT_ONE = "no flight recorder's dump"
_TOO_LARGE = "the dump holds more than flapd reads"


def plain_data(content: bytes) -> Any:
    """Dicts, lists, tuples, strings, numbers, None; FlapdError where there is anything else."""
    if len(content) > LARGEST_FILE_BYTES:
        raise FlapdError(f"the dump is larger than {LARGEST_FILE_BYTES // 1024 // 1024} MiB")
    try:
        if content.lstrip()[:1] in (b"{", b"["):
            return _from_json(content)
        return _from_pickle(content)
    except (ValueError, IndexError, KeyError, TypeError, RecursionError) as error:
        raise FlapdError(f"{_NOT_ONE}: it is damaged ({type(error).__name__})") from error


def _from_json(content: bytes) -> Any:
    if content.count(b",") > _MOST_COMMAS or content.count(b"{") > _MOST_OBJECTS:
        raise FlapdError(_TOO_LARGE)
    return msgspec.json.decode(content)


def _from_pickle(content: bytes) -> Any:
    machine = _Machine()
    for name, argument in _opcodes(content):
        _STEPS[name](machine, argument)
        if machine.room > _MOST_ROOM or len(machine.stack) > _MOST_STACKED:
            raise FlapdError(_TOO_LARGE)
    return machine.stack.pop()


def _opcodes(content: bytes) -> Iterator[tuple[str, Any]]:
    """With what each is about; not even that is read of one that builds anything but plain data."""
    stream, name = BytesIO(content), ""
    while name != "STOP":
        opcode = _BY_CODE[stream.read(1)]
        name = opcode.name
        if name not in _STEPS:
            raise FlapdError(f"{_NOT_ONE}: it holds the opcode {name}")
        yield name, None if opcode.arg is None else opcode.arg.reader(stream)


class _Machine:
    """What an unpickler has: a stack, marks in it, and a memo."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.room = 0
        """Bytes that what was built takes, at most."""
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._keeps_lists = False
        """In the memo: then one that is left out is still held."""

    def push(self, value: Any) -> None:
        self.stack.append(value)
        self.room += _OBJECT
        if isinstance(value, str):
            # PyTorch writes UTF-8; what Python reads besides could not be told on.
            value.encode()
            self.room += len(value) * _CHARACTER
        elif isinstance(value, int):
            self.room += value.bit_length() // 8

    def push_dict(self, _: Any) -> None:
        self.push({})

    def push_list(self, _: Any) -> None:
        self.push([])

    def mark(self, _: Any) -> None:
        self._marks.append(len(self.stack))

    def append(self, _: Any) -> None:
        items = self._since_mark()
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)
        self.room += len(items) * _SLOT

    def set(self, _: Any) -> None:
        items = self._since_mark()
        target = self.stack[-1]
        keys = items[::2]
        # Hashing nested tuples would exhaust the stack of C.
        if not isinstance(target, dict) or not all(type(key) is str for key in keys):
            raise TypeError
        target.update(zip(keys, items[1::2], strict=True))
        self.room += 3 * _DICT_ITEM + len(keys) * _DICT_ITEM
        stack = target.pop(_STACK, None)
        if isinstance(stack, list) and not self._keeps_lists:
            self.room -= len(stack) * _SLOT

    def pair(self, _: Any) -> None:
        second, first = self.stack.pop(), self.stack.pop()
        self.push((first, second))

    def keep(self, place: int) -> None:
        self._memo[place] = self.stack[-1]
        self._keeps_lists |= isinstance(self.stack[-1], list)

    def fetch(self, place: int) -> None:
        self.stack.append(self._memo[place])

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items


def _nothing(machine: _Machine, _: Any) -> None:
    """PROTO and STOP build nothing."""


def _constant(value: bool | None) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.push(value)


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _nothing,
    "STOP": _nothing,
    "MARK": _Machine.mark,
    "EMPTY_DICT": _Machine.push_dict,
    "EMPTY_LIST": _Machine.push_list,
    "SETITEMS": _Machine.set,
    "APPENDS": _Machine.append,
    "TUPLE2": _Machine.pair,
    "BINUNICODE": _Machine.push,
    "BININT": _Machine.push,
    "BININT1": _Machine.push,
    "BININT2": _Machine.push,
    "LONG1": _Machine.push,
    "BINFLOAT": _Machine.push,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "BINPUT": _Machine.keep,
    "LONG_BINPUT": _Machine.keep,
    "BINGET": _Machine.fetch,
    "LONG_BINGET": _Machine.fetch,
}
