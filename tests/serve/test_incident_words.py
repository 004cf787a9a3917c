"""What is said of an incident, once for the page and the terminal."""

import pytest

from flapd.model.incident import VERDICTS
from flapd.serve.incident_words import certainty, flows_again, suspects, verdict, words


@pytest.mark.parametrize("name", VERDICTS)
def test_of_each_verdict_more_is_said_than_its_name(name: str) -> None:
    said = verdict(name, ["mlx5_0/1", "mlx5_1/1"])

    assert len(said.split()) > len(words(name).split())
    assert "mlx5_1/1" not in said


def test_a_verdict_without_a_cause_and_one_that_is_new_are_told_too() -> None:
    assert verdict("caused", []) == "caused by a flap"
    assert verdict("by_chance", ["mlx5_0/1"]) == "by chance"


def test_what_took_many_ports_down_is_named_and_no_port_of_them() -> None:
    ports = ["mlx5_0/1", "mlx5_1/1", "mlx5_0/1"]

    assert suspects(ports, None) == ["mlx5_0/1", "mlx5_1/1"]
    assert suspects(ports, "leaf-1: 3 ports") == ["leaf-1: 3 ports"]
    assert certainty([0.5, 0.3], None) == 0.5
    assert certainty([0.5, 0.3], "leaf-1: 3 ports") == 0.8
    assert certainty([], None) is certainty([], "leaf-1: 3 ports") is None


def test_a_stall_whose_end_nobody_saw_is_not_told_as_if_it_had_been() -> None:
    assert flows_again(4.4, 2.0, []) == "traffic flows after 4.40 s, 2 s are usual"
    assert flows_again(4.4, 2.0, ["gpus_busy"]) == "traffic flows after 4.40 s, 2 s are usual"
    assert flows_again(4.4, 2.0, ["gpus_busy", "end"]) == (
        "traffic is seen again after 4.40 s; nobody looked when it came back"
    )
