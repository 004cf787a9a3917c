"""Cutter: a TCP proxy before a server, whose network can be cut as a cable is: without a word."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Cutter:
    """What was on its way while it is cut comes when it is mended, as TCP would send it again."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._ends: list[asyncio.StreamWriter] = []
        self._ready = threading.Event()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="cutter", daemon=True)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.set)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._whole.set()
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = int(server.sockets[0].getsockname()[1])
        self._ready.set()
        await self._stopping.wait()
        server.close()
        self._whole.set()
        for end in self._ends:
            end.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _carry(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        try:
            far, far_out = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            near_out.close()
            return
        self._ends += near_out, far_out
        await asyncio.gather(self._pipe(near, far_out), self._pipe(far, near_out))

    async def _pipe(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._whole.wait()
                sink.write(data)
                await sink.drain()
        sink.close()


@contextmanager
def cutter(port: int) -> Iterator[Cutter]:
    found = Cutter(port)
    found.start()
    try:
        yield found
    finally:
        found.stop()
