"""Connection: one connection to one NATS server, until it ends; it and pull.py know nats-py.

Its own reconnecting is not used: it holds back what was published meanwhile in memory of its own
and tries again without jitter. The outbox has everything, and a new connection is made from there.
"""

import asyncio
import random
import ssl
from contextlib import suppress

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import NoStreamResponseError
from nkeys import NkeysError

from flapd.fleet.credentials import Credentials, read_credentials, tls_context
from flapd.fleet.errors import FleetError, TooLargeError
from flapd.fleet.settings import FleetSettings
from flapd.fleet.subjects import event_subject, heartbeat_subject, inbox_prefix
from flapd.model.errors import FlapdError
from flapd.model.fleet import LARGEST_MESSAGE_BYTES, Heartbeat, NodeEvent, encode

ACKNOWLEDGED_WITHIN_SECONDS = 5.0
_ATTEMPT_SECONDS = 10.0
_DIALLED_WITHIN_SECONDS = 4
_CLOSED_WITHIN_SECONDS = 1.0
_PING_SECONDS = 20
"""A server that does not answer two of them is gone."""
_LONGEST_SAID = 200
_HEADERS_BYTES = 1024
"""No more than what goes with a message."""


async def connect(settings: FleetSettings, node: str) -> "Connection":
    """To any of the servers; FlapdError with what the last one had against it."""
    trouble: FlapdError = FleetError("fleet.servers names none")
    for server in random.sample(settings.servers, len(settings.servers)):
        connection = Connection(settings, node, server)
        try:
            await connection.open()
        except FlapdError as error:
            trouble = error
        else:
            return connection
    raise trouble


class Connection:
    """To be opened once."""

    def __init__(self, settings: FleetSettings, node: str, server: str) -> None:
        self.server = server
        self.ended = asyncio.Event()
        self._settings = settings
        self._node = node
        self._client = Client()
        self._said = ""
        """What the server said last of what it did not like."""

    async def open(self) -> None:
        """FlapdError where that cannot be: a file, the server, or what it thinks of us."""
        context = tls_context(self._settings)
        credentials = read_credentials(self._settings.credentials)
        try:
            await asyncio.wait_for(self._dial(context, credentials), _ATTEMPT_SECONDS)
        except (OSError, NatsError, NkeysError, ValueError, asyncio.TimeoutError) as error:
            raise FleetError(f"{self.server}: {self._said or words(error)}") from error
        finally:
            if not self._client.is_connected:
                await self.close()
        # Nothing secret was told so far: a JWT and a signature of what the server asked.
        if self._wants_tls() and not context.session_stats()["connect_good"]:
            await self.close()
            raise FleetError(f"{self.server}: it does not speak TLS, and is to be told by TLS only")

    def _wants_tls(self) -> bool:
        return bool(self._settings.tls_ca) or self.server.startswith("tls:")

    async def _dial(self, context: ssl.SSLContext, credentials: Credentials) -> None:
        await self._client.connect(
            self.server,
            name=f"flapd {self._node}",
            error_cb=self._on_error,
            closed_cb=self._on_close,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=_DIALLED_WITHIN_SECONDS,
            ping_interval=_PING_SECONDS,
            tls=context,
            user_credentials=credentials.jwt_file,
            nkeys_seed_str=credentials.seed,
            inbox_prefix=inbox_prefix(self._settings.cluster, self._node),
        )

    async def _on_error(self, error: Exception) -> None:
        self._said = words(error)

    async def _on_close(self) -> None:
        self.ended.set()

    @property
    def client(self) -> Client:
        return self._client

    async def publish(self, event: NodeEvent) -> None:
        """Returns once the stream has it; FleetError where it may not, TooLargeError."""
        body = encode(event)
        if len(body) > min(self._client.max_payload, LARGEST_MESSAGE_BYTES) - _HEADERS_BYTES:
            raise TooLargeError(f"{self.server} takes no message of {len(body)} bytes")
        subject = event_subject(event.cluster, event.node, event.kind)
        self._said = ""
        try:
            await self._client.jetstream().publish(
                subject,
                body,
                timeout=ACKNOWLEDGED_WITHIN_SECONDS,
                headers={"Nats-Msg-Id": event.message_id},
            )
        except NoStreamResponseError as error:
            raise FleetError(f"{self.server}: no stream takes {subject}") from error
        except (OSError, NatsError, asyncio.TimeoutError) as error:
            raise FleetError(f"{self.server}: {self._said or words(error)}") from error

    async def beat(self, heartbeat: Heartbeat) -> None:
        """Nobody acknowledges it; FleetError where it cannot even be sent."""
        try:
            subject = heartbeat_subject(heartbeat.cluster, heartbeat.node)
            await self._client.publish(subject, encode(heartbeat))
        except (OSError, NatsError, asyncio.TimeoutError) as error:
            raise FleetError(f"{self.server}: {words(error)}") from error

    async def close(self) -> None:
        with suppress(OSError, NatsError, asyncio.TimeoutError):
            await asyncio.wait_for(self._client.close(), _CLOSED_WITHIN_SECONDS)


def words(error: Exception) -> str:
    """For a terminal as well, though a server may have written it."""
    said = "".join(filter(str.isprintable, str(error)))[:_LONGEST_SAID]
    return said.removeprefix("nats: ").strip("'") or type(error).__name__
