"""Assets: the style, the scripts and the icon of the page, from the package itself."""

import hashlib
from functools import cache
from pathlib import Path

import msgspec

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", "": "text/plain"}
_FILES = {
    "page.css": "page.css",
    "icon.svg": "icon.svg",
    "clock.js": "clock.js",
    "live.js": "live.js",
    "timeline.js": "timeline.js",
    "charts.js": "charts.js",
    "uplot.js": "uplot/uplot.js",
    "uplot.css": "uplot/uplot.css",
    "uplot-licence.txt": "uplot/LICENSE",
}
ASSET_TYPES = tuple(dict.fromkeys(_TYPES.values()))


class Asset(msgspec.Struct, frozen=True):
    body: bytes
    content_type: str
    tag: str


@cache
def asset(name: str) -> Asset | None:
    """None where the page has no file of this name."""
    path = _FILES.get(name)
    if path is None:
        return None
    body = (_STATIC / path).read_bytes()
    kind = _TYPES[Path(path).suffix]
    return Asset(body, kind, hashlib.blake2b(body, digest_size=8).hexdigest())
