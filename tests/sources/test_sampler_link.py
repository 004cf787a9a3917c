import socket
from collections.abc import Iterator

import pytest

from flapd.model.observation import Tick
from flapd.sources.sampler_link import (
    Alive,
    WatchClosely,
    make_link,
    receive,
    receive_request,
    send,
    send_if_room,
)

Link = tuple[socket.socket, socket.socket]


@pytest.fixture
def link() -> Iterator[Link]:
    agent, sampler = make_link()
    with agent, sampler:
        yield agent, sampler


def test_what_waits_is_received_together_and_in_order(link: Link) -> None:
    agent, sampler = link
    for message in (Tick(1), Alive(), Tick(2)):
        assert send_if_room(sampler, message)

    assert receive(agent, 10) == [Tick(1), Alive(), Tick(2)]


def test_receiving_does_not_wait_for_more_than_there_is(link: Link) -> None:
    """With a sampler that tells something all the time it would never end."""
    agent, sampler = link
    send_if_room(sampler, Tick(1))
    assert receive(agent, 10) == [Tick(1)]
    send_if_room(sampler, Tick(2))
    assert receive(agent, 10) == [Tick(2)]


def test_silence_is_told(link: Link) -> None:
    with pytest.raises(TimeoutError):
        receive(link[0], 0.01)


def test_an_ended_sampler_tells_nothing(link: Link) -> None:
    agent, sampler = link
    send_if_room(sampler, Tick(1))
    sampler.close()

    assert receive(agent, 10) == [Tick(1)]
    assert receive(agent, 10) == []


def test_a_sampler_never_waits_for_its_agent(link: Link) -> None:
    agent, sampler = link
    sent = 0
    while send_if_room(sampler, Tick(sent)):
        sent += 1

    assert sent > 0
    assert receive(agent, 10) == [Tick(number) for number in range(sent)]
    assert send_if_room(sampler, Tick(sent))


def test_what_the_agent_wants_arrives_and_then_its_end(link: Link) -> None:
    agent, sampler = link
    send(agent, WatchClosely(frozenset({"a/1"})))
    agent.close()

    assert receive_request(sampler) == WatchClosely(frozenset({"a/1"}))
    assert receive_request(sampler) is None
