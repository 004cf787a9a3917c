"""Who is held up by a process is left behind; real threads."""

import threading
import time

import pytest

from flapd.sources.jobs.attempts import Attempts, HangsError, SupersededError

PATIENCE_SECONDS = 20.0


def test_what_holds_somebody_up_is_known_by_others_and_then_left_alone() -> None:
    attempts = Attempts()
    is_in, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    came_back: list[type[BaseException]] = []

    def look() -> None:
        attempts.begin()
        try:
            with attempts.at(7):
                is_in.set()
                go_on.wait(PATIENCE_SECONDS)
        except SupersededError:
            came_back.append(SupersededError)
        ended.set()

    threading.Thread(target=look, daemon=True).start()
    assert is_in.wait(PATIENCE_SECONDS)
    time.sleep(0.002)
    assert attempts.held_up_by(1_000_000) == 7
    assert attempts.held_up_by(10**12) is None
    attempts.give_up(7)
    attempts.begin()
    with pytest.raises(HangsError), attempts.at(7):
        pass
    with attempts.at(8):
        pass
    go_on.set()

    assert ended.wait(PATIENCE_SECONDS)
    assert came_back == [SupersededError]
    assert attempts.held_up_by(0) is None


def test_a_process_that_ended_hangs_no_more() -> None:
    attempts = Attempts()
    attempts.begin()
    attempts.hanging.add(7)
    attempts.forget({8})

    with attempts.at(7):
        pass
