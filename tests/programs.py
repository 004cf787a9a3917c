"""Programs of other projects that tests run: of PATH, or as `make system-packages` unpacks them."""

import os
import shutil
import sys
from pathlib import Path

import pytest

_UNPACKED = Path(__file__).parent.parent / ".programs"


def program(name: str) -> str:
    """Skips the test where there is none."""
    others = map(str, (Path(sys.prefix) / "bin", *_UNPACKED.glob("*")))
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *others]))
    if found is None:
        pytest.skip(f"there is no {name} here: make system-packages brings it")
    return found
