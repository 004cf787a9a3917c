"""Lays trees out as plain files: captured ones, and small ones written in a test."""

import re
from pathlib import Path

CAPTURES = Path(__file__).parent / "captures"

_HEAD = re.compile(r"^==> (\S+)(?: -> (\S+)| !(\w+))? <==\n", re.MULTILINE)


def lay_out_capture(name: str, root: Path) -> None:
    """Under `root` as if it were `/sys`; a file whose read failed is left out."""
    text = (CAPTURES / name).read_text()
    heads = list(_HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        path, target, error = head.groups()
        place = root / path.removeprefix("/sys/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if target is None and error is None:
            place.write_text(text[head.end() : following.start() if following else len(text)])


def lay_out(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
