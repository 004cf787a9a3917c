"""Feeder: puts what a fleet tells into its stream, many messages under way at once."""

import asyncio
import json
from collections.abc import Iterable

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from simulators.cluster.message import Message
from simulators.errors import SimulatorError

WINDOW = 1000
PATIENCE_SECONDS = 30.0
_FLUSH_EVERY = 200


class Fed(msgspec.Struct):
    """What the stream answered."""

    stored: int = 0
    doubled: int = 0
    """It had them already."""
    refused: str = ""
    """Why it did not take one, the last such answer."""

    @property
    def answered(self) -> int:
        return self.stored + self.doubled


class Feeder:
    """On one connection."""

    def __init__(
        self,
        connection: Client,
        window: int = WINDOW,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """No more than `window` messages are under way, and none for longer than that."""
        self.fed = Fed()
        self._connection = connection
        self._window = window
        self._patience_seconds = patience_seconds
        self._inbox = connection.new_inbox()
        self._sent = 0
        self._answers = 0
        self._moved = asyncio.Event()

    async def start(self) -> None:
        await self._connection.subscribe(f"{self._inbox}.*", cb=self._answered)

    async def feed(self, messages: Iterable[Message]) -> None:
        """Returns once the stream has them all; SimulatorError where it does not take one."""
        for message in messages:
            await self.put(message)
        await self.settle()

    async def put(self, message: Message) -> None:
        """Sent, and not answered yet."""
        await self._until(self._window - 1)
        headers = None if message.id is None else {"Nats-Msg-Id": message.id}
        reply = f"{self._inbox}.{self._sent}"
        await self._connection.publish(message.subject, message.body, reply, headers)
        self._sent += 1
        if self._sent % _FLUSH_EVERY == 0:
            await asyncio.sleep(0)  # else nothing is read meanwhile

    async def settle(self) -> None:
        await self._until(0)
        if self.fed.refused:
            raise SimulatorError(f"the stream refused an event: {self.fed.refused}")

    async def _until(self, under_way: int) -> None:
        while self._sent - self._answers > under_way:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), self._patience_seconds)
            except asyncio.TimeoutError as error:
                raise SimulatorError(
                    f"the stream left {self._sent - self._answers} events unanswered"
                ) from error

    async def _answered(self, message: Msg) -> None:
        self._answers += 1
        answer = json.loads(message.data) if message.data else {"error": "no stream is there"}
        if "error" in answer:
            self.fed.refused = str(answer["error"])
        elif answer.get("duplicate"):
            self.fed.doubled += 1
        else:
            self.fed.stored += 1
        self._moved.set()
