"""Writes the dashboards, as Grafana imports them, beside this file."""

from collections.abc import Iterator
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana.cost import cost
from deploy.grafana.fleet import fleet
from deploy.grafana.node import node

HERE = Path(__file__).parent


def dashboards() -> Iterator[tuple[Path, str]]:
    """The path of each, and what stands there."""
    for board in (fleet(), node(), cost()):
        text = JSONEncoder(sort_keys=True, indent=2).encode(board)
        yield HERE / f"{board.uid}.json", text + "\n"


if __name__ == "__main__":
    for path, text in dashboards():
        path.write_text(text)
