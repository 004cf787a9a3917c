"""A name is one token of a subject, no two names share one, and a subject says whose it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.fleet.subjects import event_subject, heartbeat_subject, origin_of, token
from flapd.model.fleet import FleetMessageError

NAMES = st.text(min_size=1, max_size=253)


@given(NAMES)
def test_whatever_a_node_is_called_its_name_is_one_plain_token(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_~%-]+", token(name))


@given(NAMES)
def test_a_subject_says_whose_it_is(name: str) -> None:
    assert origin_of(event_subject("default", name, "flap")) == ("default", name)
    assert origin_of(heartbeat_subject("default", name)) == ("default", name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gpu-17", "gpu-17"), ("gpu-17.example", "gpu-17%2Eexample"), ("*", "%2A"), (">", "%3E")],
)
def test_names_of_hosts_stay_readable(name: str, expected: str) -> None:
    assert token(name) == expected


@pytest.mark.parametrize("subject", ["", "flapd", "flapd.a.b", "flapd.a.b.c.d", "other.a.b.c"])
def test_another_subject_is_none_of_ours(subject: str) -> None:
    with pytest.raises(FleetMessageError):
        origin_of(subject)
