#!/usr/bin/env python3
"""Adds a user to a NATS server of a fleet, with a new key; run it by the Python flapd is in.

    add_user.py agent NODE [--cluster NAME]   may tell for this node, and nothing else
    add_user.py hub NAME                      may read everything, and change nothing
    add_user.py admin NAME                    may make and change the stream

The public key and what it may do goes into users.conf (a user of that name is replaced), the seed
into NAME.seed, which is for fleet.credentials there and to be kept from everybody else. Then have
the server read it: systemctl reload flapd-nats.
"""

import argparse
import json
import os
from pathlib import Path

import nkeys

from flapd.fleet.subjects import event_subject, heartbeat_subject, inbox_prefix, token

_STREAM = "FLAPD"
_HUB_MAY_ASK = (
    "INFO",
    "STREAM.NAMES",
    f"STREAM.INFO.{_STREAM}",
    f"STREAM.MSG.GET.{_STREAM}",
    f"CONSUMER.CREATE.{_STREAM}",
    f"CONSUMER.CREATE.{_STREAM}.>",
    f"CONSUMER.DURABLE.CREATE.{_STREAM}.*",
    f"CONSUMER.DELETE.{_STREAM}.*",
    f"CONSUMER.INFO.{_STREAM}.*",
    f"CONSUMER.MSG.NEXT.{_STREAM}.*",
)


def main() -> None:
    asked = _asked()
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public_key = nkeys.from_seed(bytearray(seed)).public_key.decode()
    name = " ".join(filter(None, (asked.kind, asked.cluster, asked.name)))
    _add(asked.users, name, public_key, _permissions(asked))
    file = asked.seeds / f"{token(asked.name)}.seed"
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
        written.write(seed + b"\n")
    print(file)  # noqa: T201


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=("agent", "hub", "admin"))
    parser.add_argument("name", help="of the node as in node.name, or of the user")
    parser.add_argument("--cluster", help='as in fleet.cluster; "default"')
    parser.add_argument("--users", type=Path, default=Path("/etc/flapd-nats/users.conf"))
    parser.add_argument("--seeds", type=Path, default=Path(), help="directory; this one")
    asked = parser.parse_args()
    if asked.kind == "agent":
        asked.cluster = asked.cluster or "default"
    elif asked.cluster is not None:
        parser.error("--cluster is of agents alone")
    return asked


def _permissions(asked: argparse.Namespace) -> dict[str, list[str]] | None:
    """None: everything."""
    if asked.kind == "agent":
        where = asked.cluster, asked.name
        return {
            "publish": [event_subject(*where, "*"), heartbeat_subject(*where)],
            "subscribe": [f"{inbox_prefix(*where)}.>"],
        }
    if asked.kind == "hub":
        asks = [f"$JS.API.{what}" for what in _HUB_MAY_ASK]
        return {
            "publish": [*asks, f"$JS.ACK.{_STREAM}.>"],
            "subscribe": ["flapd-heartbeat.>", "_INBOX.>"],
        }
    return None


def _add(users: Path, name: str, public_key: str, permissions: dict[str, list[str]] | None) -> None:
    """A line a user, whose name stands behind it; the file is there whole at any moment."""
    entry = {"nkey": public_key} | ({} if permissions is None else {"permissions": permissions})
    first, *lines, last = users.read_text().splitlines()
    others = [line for line in lines if not line.endswith(f" # {name}")]
    fresh = users.with_name(f"{users.name}.new")
    fresh.write_text("\n".join([first, *others, f"  {json.dumps(entry)} # {name}", last]) + "\n")
    fresh.replace(users)


if __name__ == "__main__":
    main()
