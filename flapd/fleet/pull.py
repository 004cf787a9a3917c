"""Pull: messages of the fleet's stream in their order, some thousand at a time.

The consumer is ephemeral and nothing is acknowledged: how far the stream was taken is kept with
what was taken, and a new consumer begins behind it. So any number of hubs read beside each other,
and a server keeps nothing for one that is gone
(https://docs.nats.io/nats-concepts/jetstream/consumers).
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from flapd.fleet.connection import words
from flapd.fleet.errors import FleetError

MESSAGES_AT_ONCE = 4000
_BYTES_AT_ONCE = 8 << 20
_LINGERS_SECONDS = 20.0
"""A question that nothing answers ends by itself, and is asked again."""
_GRACE_SECONDS = 5.0
_FORGOTTEN_AFTER_SECONDS = 120.0
_ENDED = "408"
"""A question has ended as it should; every other status is trouble."""
_TOKENS = 9
"""Of `$JS.ACK.STREAM.CONSUMER.DELIVERED.STREAM_SEQ.CONSUMER_SEQ.TIME.PENDING`; newer servers may
put domain and account before the stream
(https://github.com/nats-io/nats-architecture-and-design, ADR-15)."""
_API = "$JS.API"


class Stored(NamedTuple):
    """One message as the stream has it."""

    seq: int
    unix_ns: int
    """When it came, by the server's clock."""
    subject: str
    body: bytes
    waiting: int
    """Messages behind it."""


class StreamState(NamedTuple):
    name: str
    created: str
    first_seq: int
    last_seq: int
    """`first_seq - 1` where it holds none."""


async def stream_state(client: Client, subject: str) -> StreamState:
    """Of the stream that takes this subject; FleetError where there is none, or nobody says."""
    found = await _asked(client, "STREAM.NAMES", {"subject": subject})
    names = found.get("streams") or []
    if not names:
        raise FleetError(f"no stream takes {subject}; `nats stream add` makes one")
    told = await _asked(client, f"STREAM.INFO.{names[0]}", {})
    state = told["state"]
    last = state["last_seq"]
    first = state["first_seq"] if state["messages"] else last + 1
    return StreamState(names[0], told["created"], first, last)


async def hear(client: Client, subject: str, heard: Callable[[str, bytes], None]) -> None:
    """Has `heard` called with each message that is published from now on."""

    async def take(message: Msg) -> None:
        heard(message.subject, message.data)

    try:
        await client.subscribe(subject, cb=take)
    except (OSError, NatsError) as error:
        raise FleetError(f"{subject} cannot be heard: {words(error)}") from error


async def _asked(client: Client, what: str, question: dict[str, object]) -> Any:
    try:
        answer = await client.request(f"{_API}.{what}", json.dumps(question).encode(), timeout=5)
        told = json.loads(answer.data)
    except (OSError, NatsError, ValueError, asyncio.TimeoutError) as error:
        raise FleetError(f"the stream cannot be asked: {words(error)}") from error
    if "error" in told:
        raise FleetError(f"the stream: {told['error'].get('description', 'it refuses')}")
    return told


class Pull:
    """To be opened once; raises FleetError from then on where it cannot go on."""

    def __init__(self, client: Client, stream: str) -> None:
        self._client = client
        self._stream = stream
        self._inbox = client.new_inbox()
        self._subscription: Subscription | None = None
        self._consumer = ""
        self._next = 1
        """The consumer's own number of the message that comes next."""
        self._to_come = 0
        """Of the question that was asked last."""
        self._arrived: list[Stored] = []
        self._more = asyncio.Event()
        self._trouble = ""

    async def open(self, first_seq: int) -> None:
        """Begins at this message of the stream, or the next one that there is."""
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=first_seq,
            inactive_threshold=_FORGOTTEN_AFTER_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        try:
            self._subscription = await self._client.subscribe(
                self._inbox,
                cb=self._take,
                pending_msgs_limit=2 * MESSAGES_AT_ONCE,
                pending_bytes_limit=0,
            )
            made = await self._client.jetstream().add_consumer(self._stream, config)
        except (OSError, NatsError, asyncio.TimeoutError) as error:
            raise FleetError(f"the stream cannot be read: {words(error)}") from error
        self._consumer = made.name

    async def next(self) -> list[Stored]:
        """At least one message; meanwhile, and while these are taken, the next ones come."""
        while not self._arrived:
            if self._to_come <= 0:
                await self._ask()
            self._more.clear()
            try:
                await asyncio.wait_for(self._more.wait(), _LINGERS_SECONDS + _GRACE_SECONDS)
            except asyncio.TimeoutError:
                raise FleetError("the stream does not answer") from None
            if self._trouble:
                raise FleetError(f"the stream: {self._trouble}")
        arrived, self._arrived = self._arrived, []
        if self._to_come <= 0:
            await self._ask()
        return arrived

    async def _ask(self) -> None:
        self._to_come = MESSAGES_AT_ONCE
        asked = {
            "batch": MESSAGES_AT_ONCE,
            "max_bytes": _BYTES_AT_ONCE,
            "expires": round(_LINGERS_SECONDS * 1e9),
        }
        subject = f"{_API}.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        try:
            await self._client.publish(subject, json.dumps(asked).encode(), self._inbox)
        except (OSError, NatsError) as error:
            raise FleetError(f"the stream cannot be asked: {words(error)}") from error

    async def _take(self, message: Msg) -> None:
        status = message.headers.get("Status") if message.headers else None
        if status is None:
            self._take_stored(message)
        elif status == _ENDED or _is_full(message):
            self._to_come = 0
        else:
            said = (message.headers or {}).get("Description", "")
            self._trouble = f"it ends with {status} {said}".rstrip()
        self._more.set()

    def _take_stored(self, message: Msg) -> None:
        tokens = message.reply.split(".")
        place = tokens[4:9] if len(tokens) == _TOKENS else tokens[6:11]
        try:
            _delivered, seq, number, unix_ns, waiting = map(int, place)
        except ValueError:
            self._trouble = f"{message.reply!r} is no place in it"
            return
        if number != self._next:
            self._trouble = f"message {self._next} of its consumer was lost on the way"
            return
        self._next += 1
        self._to_come -= 1
        self._arrived.append(Stored(seq, unix_ns, message.subject, message.data, waiting))


def _is_full(message: Msg) -> bool:
    """The question has ended because so many bytes came."""
    return "MaxBytes" in (message.headers or {}).get("Description", "")
