"""Clients that no server would wish for; each says how it was rid of."""

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Literal

Outcome = Literal["answered", "closed", "neither"]
Client = Callable[[str, int], Awaitable[Outcome]]

_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n"
_HUGE_BYTES = 4 << 20


async def _rest(reader: asyncio.StreamReader) -> Outcome:
    """Until the server closes."""
    answered = False
    try:
        while piece := await reader.read(1 << 16):
            answered = answered or piece.startswith(b"HTTP/1.1 ")
    except ConnectionError:
        pass
    return "answered" if answered else "closed"


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """As much of it as the server takes."""
    try:
        writer.write(data)
        await writer.drain()
    except ConnectionError:
        pass


async def _talk(host: str, port: int, *pieces: bytes, half_close: bool = False) -> Outcome:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        sending = asyncio.gather(*(_send(writer, piece) for piece in pieces))
        if half_close:
            await sending
            writer.write_eof()
        outcome = await _rest(reader)
        await sending
        return outcome
    finally:
        writer.close()


async def a_byte_a_second(host: str, port: int) -> Outcome:
    reader, writer = await asyncio.open_connection(host, port)

    async def dribble() -> None:
        while not writer.is_closing():
            await _send(writer, b"G")
            await asyncio.sleep(1)

    dribbling = asyncio.create_task(dribble())
    try:
        return await _rest(reader)
    finally:
        writer.close()
        await dribbling


async def silent(host: str, port: int) -> Outcome:
    return await _talk(host, port)


async def huge_head(host: str, port: int) -> Outcome:
    return await _talk(host, port, _REQUEST[:-2] + b"X-Huge: " + b"x" * _HUGE_BYTES + b"\r\n\r\n")


async def endless_heads(host: str, port: int) -> Outcome:
    heads = b"".join(b"X-%d: y\r\n" % number for number in range(200_000))
    return await _talk(host, port, _REQUEST[:-2] + heads + b"\r\n")


async def huge_body(host: str, port: int) -> Outcome:
    head = _REQUEST[:-2] + b"Content-Length: 1000000000\r\n\r\n"
    return await _talk(host, port, head, b"x" * _HUGE_BYTES)


async def endless_chunks(host: str, port: int) -> Outcome:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    return await _talk(
        host, port, _REQUEST[:-2] + b"Transfer-Encoding: chunked\r\n\r\n", chunk * 64
    )


async def garbage(host: str, port: int) -> Outcome:
    return await _talk(host, port, os.urandom(1 << 16))


async def half_closed(host: str, port: int) -> Outcome:
    return await _talk(host, port, _REQUEST, half_close=True)


async def pipelined(host: str, port: int) -> Outcome:
    return await _talk(host, port, _REQUEST * 500, half_close=True)


async def reset(host: str, port: int) -> Outcome:
    """Asks, and is gone before the answer."""
    _, writer = await asyncio.open_connection(host, port)
    await _send(writer, _REQUEST * 20)
    plug: socket.socket = writer.get_extra_info("socket")
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return "closed"


async def takes_no_byte(host: str, port: int) -> Outcome:
    """Asks for much and reads nothing of it until the server has had enough."""
    reader, writer = await asyncio.open_connection(host, port, limit=1)
    request = _REQUEST.replace(b"/healthz", b"/metrics") * 2000
    try:
        await _send(writer, request)
        while not writer.is_closing():
            await asyncio.sleep(0.2)
            await _send(writer, _REQUEST)
        return await _rest(reader)
    finally:
        writer.close()


ALL: tuple[Client, ...] = (
    *(a_byte_a_second, silent, huge_head, endless_heads, huge_body, endless_chunks),
    *(garbage, half_closed, pipelined, reset, takes_no_byte),
)
