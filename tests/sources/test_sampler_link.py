import socket
from collections.abc import Iterator

import pytest

from flapd.model.observation import Sample, Tick
from flapd.sources.read_health import ReadHealth
from flapd.sources.sampler_link import (
    HOLD_NS,
    TOGETHER_BYTES,
    Outbox,
    Told,
    WatchClosely,
    make_link,
    receive,
    receive_request,
    send,
)

Link = tuple[socket.socket, socket.socket]


@pytest.fixture
def link() -> Iterator[Link]:
    agent, sampler = make_link()
    with agent, sampler:
        yield agent, sampler


def tell(link: socket.socket, *messages: Told) -> None:
    outbox = Outbox(link)
    for message in messages:
        assert outbox.put(message)
    outbox.flush()


def test_what_is_told_arrives_together_and_in_order(link: Link) -> None:
    agent, sampler = link
    tell(sampler, Tick(1), ReadHealth(), Tick(2))

    assert receive(agent, 10) == [Tick(1), ReadHealth(), Tick(2)]


def test_what_waits_is_received_together(link: Link) -> None:
    agent, sampler = link
    tell(sampler, Tick(1))
    tell(sampler, Tick(2))

    assert receive(agent, 10) == [Tick(1), Tick(2)]


def test_nothing_goes_before_it_is_flushed(link: Link) -> None:
    agent, sampler = link
    outbox = Outbox(sampler)
    assert outbox.put(Tick(1))

    with pytest.raises(TimeoutError):
        receive(agent, 0.01)


def test_what_is_not_urgent_waits_a_moment_for_more(link: Link) -> None:
    agent, sampler = link
    now_ns = 0
    outbox = Outbox(sampler, lambda: now_ns)
    assert outbox.put(Tick(1), urgent=False)
    now_ns = HOLD_NS - 1
    assert outbox.put(Tick(2), urgent=False)
    outbox.flush()
    with pytest.raises(TimeoutError):
        receive(agent, 0.01)

    now_ns = HOLD_NS
    outbox.flush()

    assert receive(agent, 10) == [Tick(1), Tick(2)]


def test_what_is_urgent_takes_what_waits_with_it_in_order(link: Link) -> None:
    agent, sampler = link
    outbox = Outbox(sampler, lambda: 0)
    assert outbox.put(Tick(1), urgent=False)
    assert outbox.put(Tick(2))
    assert outbox.put(Tick(3), urgent=False)
    outbox.flush()

    assert receive(agent, 10) == [Tick(1), Tick(2), Tick(3)]


def test_receiving_does_not_wait_for_more_than_there_is(link: Link) -> None:
    """With a sampler that tells something all the time it would never end."""
    agent, sampler = link
    tell(sampler, Tick(1))
    assert receive(agent, 10) == [Tick(1)]
    tell(sampler, Tick(2))
    assert receive(agent, 10) == [Tick(2)]


def test_much_goes_in_several_datagrams_by_itself(link: Link) -> None:
    agent, sampler = link
    samples = [
        Sample(f"{number}/1", 1, 2, 1, {f"hw_counters/{'x' * 60}{n}": n for n in range(200)})
        for number in range(12)
    ]
    outbox = Outbox(sampler)
    told: list[Told] = []
    for sample in samples:
        assert outbox.put(sample)
    outbox.flush()
    while len(told) < len(samples):
        told += receive(agent, 10)

    assert told == samples


def test_one_message_longer_than_goes_together_goes_alone(link: Link) -> None:
    agent, sampler = link
    long = Sample("a/1", 1, 2, 1, errors={"state": "x" * (TOGETHER_BYTES + 1)})
    tell(sampler, Tick(1), long, Tick(2))
    told: list[Told] = []
    while len(told) < 3:
        told += receive(agent, 10)

    assert told == [Tick(1), long, Tick(2)]


def test_silence_is_told(link: Link) -> None:
    with pytest.raises(TimeoutError):
        receive(link[0], 0.01)


def test_an_ended_sampler_tells_nothing(link: Link) -> None:
    agent, sampler = link
    tell(sampler, Tick(1))
    sampler.close()

    assert receive(agent, 10) == [Tick(1)]
    assert receive(agent, 10) == []


def test_a_sampler_never_waits_for_its_agent_and_loses_nothing_it_took(link: Link) -> None:
    agent, sampler = link
    outbox = Outbox(sampler)
    taken = 0
    while outbox.put(Tick(taken)):
        taken += 1
    outbox.flush()

    told: list[Told] = []
    while len(told) < taken:
        told += receive(agent, 10)
        outbox.flush()

    assert told == [Tick(number) for number in range(taken)]
    assert outbox.put(Tick(taken))


def test_telling_an_agent_that_has_ended_fails(link: Link) -> None:
    agent, sampler = link
    agent.close()
    outbox = Outbox(sampler)
    assert outbox.put(Tick(1))

    with pytest.raises(OSError, match=r"Broken pipe|Connection reset"):
        outbox.flush()


def test_what_the_agent_wants_arrives_and_then_its_end(link: Link) -> None:
    agent, sampler = link
    send(agent, WatchClosely(frozenset({"a/1"})))
    agent.close()

    assert receive_request(sampler) == WatchClosely(frozenset({"a/1"}))
    assert receive_request(sampler) is None
