"""`flapd maintenance` and `flapd repaired`: what people do to ports, told to the agent."""

import msgspec

from flapd.cli.answers import InForce
from flapd.cli.client import ask
from flapd.cli.output import Cell, Column, decoded, print_json, print_table
from flapd.cli.target import SocketTarget
from flapd.cli.text import clock_time
from flapd.model.errors import FlapdError

PATH = "/api/v1/maintenance"
REPAIRED_PATH = "/api/v1/repaired"

_COLUMNS = (Column("port", is_whole=True), Column("until", is_whole=True), Column("reason"))


class Wish(msgspec.Struct):
    """What is asked for: show what is in force, begin, or end."""

    for_seconds: float | None
    reason: str | None
    port: str | None
    end: bool

    def method(self) -> str:
        """Raises FlapdError where the options do not go together."""
        begins = self.for_seconds is not None or self.reason is not None or self.port is not None
        if self.end and begins:
            raise FlapdError("--end ends all planned work and goes with no other option")
        if self.end:
            return "DELETE"
        if begins and (self.for_seconds is None or not self.reason):
            raise FlapdError("planned work needs --for, such as 2h, and --reason")
        return "POST" if begins else "GET"


def maintenance(target: SocketTarget, wish: Wish, as_json: bool) -> int:
    """Prints what is in force afterwards; the exit status."""
    method = wish.method()
    body = None
    if method == "POST":
        asked = {"for_seconds": wish.for_seconds, "reason": wish.reason, "port": wish.port}
        body = msgspec.json.encode(asked)
    _show(ask([target], PATH, method=method, body=body), as_json)
    return 0


def repaired(target: SocketTarget, port: str, note: str, as_json: bool) -> int:
    """The exit status."""
    told = msgspec.json.encode({"port": port, "note": note})
    body = ask([target], REPAIRED_PATH, method="POST", body=told)
    if as_json:
        print_json(body)
    else:
        print(f"{port}: noted as repaired; its penalty begins anew, its history stays")
    return 0


def _show(body: bytes, as_json: bool) -> None:
    if as_json:
        print_json(body)
        return
    planned = decoded(body, InForce).maintenance
    if not planned:
        print("No planned work is in force.")
        return
    rows = [
        [Cell(work.port or "all ports"), Cell(clock_time(work.until)), Cell(work.reason)]
        for work in planned
    ]
    print_table(_COLUMNS, rows)
