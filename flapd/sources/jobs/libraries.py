"""Which releases of PyTorch and NCCL a process has loaded, by what its libraries are named."""

import re
from collections.abc import Iterable

_NCCL = re.compile(r"/libnccl\.so\.(\d+\.\d+\.\d+)")
_TORCH = re.compile(r"^(.*/torch)/lib/libtorch[\w.]*\.so[\d.]*$")
_VERSION = re.compile(rb"""^__version__ = ['"](\d+\.\d+(?:\.\d+)?)""", re.MULTILINE)


def nccl_of(libraries: Iterable[str]) -> str | None:
    """None where the library has no release in its name, as in PyTorch's own wheels."""
    return next((found[1] for path in libraries if (found := _NCCL.search(path))), None)


def torch_version_file(libraries: Iterable[str]) -> str | None:
    """Where the package says what it is."""
    return next(
        (f"{found[1]}/version.py" for path in libraries if (found := _TORCH.match(path))), None
    )


def torch_in(version_file: bytes) -> str | None:
    found = _VERSION.search(version_file)
    return None if found is None else found[1].decode()
