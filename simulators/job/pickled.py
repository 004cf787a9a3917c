"""Pickled: plain data as PyTorch writes it (torch/csrc/jit/serialization/pickler.cpp).

Python's own pickler has opcodes for lists and dicts of one item, which PyTorch's never writes.
"""

import pickle
from typing import Any

_BEGIN, _END = b"\x80\x02", b"."


def pickled(value: Any) -> bytes:
    """Protocol 2, of dicts, lists, pairs, strings, numbers, None."""
    return _BEGIN + _written(value) + _END


def _written(value: Any) -> bytes:
    if isinstance(value, dict):
        pairs = (_written(key) + _written(item) for key, item in value.items())
        return b"}(" + b"".join(pairs) + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(_written, value)) + b"e"
    if isinstance(value, tuple):
        return b"".join(map(_written, value)) + b"\x86"
    # Python writes these as PyTorch does.
    return pickle.dumps(value, protocol=2)[len(_BEGIN) : -len(_END)]
