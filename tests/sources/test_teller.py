"""What the job reader tells."""

from contextlib import closing

import pytest

from flapd.model.finding import PlannedPause, Step
from flapd.model.observation import Noted
from flapd.sources.child_link import make_link, receive
from flapd.sources.job_reader import Teller
from flapd.sources.job_reader_link import told_decoder


def test_what_no_message_can_hold_is_left_out_and_said_and_the_next_is_told(
    capfd: pytest.CaptureFixture[str],
) -> None:
    ours, theirs = make_link()
    beyond = Noted("4711", Step("megatron", 2**64, 1.0, 1, 0, 0), 1)
    after = Noted("4711", PlannedPause("checkpoint", 1, 0), 2)
    with closing(ours), closing(theirs):
        teller = Teller(theirs)
        teller.tell(beyond)
        teller.tell(after)
        teller.flush()

        assert receive(ours, told_decoder, 5) == [after]
    assert "Noted left out" in capfd.readouterr().err
