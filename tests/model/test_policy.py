"""The names of a policy are those that are reckoned with, and no others."""

from typing import get_args, get_type_hints

from flapd.core.cost.inputs import Inputs
from flapd.core.job.policy import Policy
from flapd.model.policy import POLICY_TYPES


def test_the_policy_has_what_is_reckoned_with_and_each_is_what_it_should_be() -> None:
    used = {**get_type_hints(Inputs), **get_type_hints(Policy)}
    del used["remarks"]
    types = {name: get_args(hint)[0] for name, hint in used.items()}
    words = {name for name, kind in types.items() if not isinstance(kind, type)}

    assert words == {"schedule"}
    assert {**types, "schedule": str} == POLICY_TYPES
