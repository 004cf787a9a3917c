"""What is said of an incident, once for the page and the terminal."""

import pytest

from flapd.model.incident import VERDICTS
from flapd.serve.incident_words import verdict, words


@pytest.mark.parametrize("name", VERDICTS)
def test_of_each_verdict_more_is_said_than_its_name(name: str) -> None:
    said = verdict(name, ["mlx5_0/1", "mlx5_1/1"])

    assert len(said.split()) > len(words(name).split())
    assert "mlx5_1/1" not in said


def test_a_verdict_without_a_cause_and_one_that_is_new_are_told_too() -> None:
    assert verdict("caused", []) == "caused by a flap"
    assert verdict("by_chance", ["mlx5_0/1"]) == "by chance"
