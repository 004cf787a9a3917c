"""Every message in the table is recognised, in the form of every release, by its examples."""

from typing import Any

import pytest

from flapd.core.job.forms import FORMS
from flapd.model.fault import Fault
from flapd.model.finding import Finding
from flapd.model.times import rfc3339
from tests.core.job.parts import Example, examples, read

EXAMPLES = examples()


def shown(finding: Finding) -> dict[str, Any]:
    """A finding's fields, times as people write them, None as the word."""
    values = {name: getattr(finding, name) for name in finding.__struct_fields__}
    for name, key in (("time_ns", "time"), ("logged_ns", "logged")):
        if values.get(name) is not None:
            values[key] = rfc3339(values[name])
    return {name: "None" if value is None else value for name, value in values.items()}


def told_by(example: Example) -> Finding:
    findings = read(example.line)
    named = [one for one in findings if getattr(one, "form", None) == example.form]
    named += [one for one in findings if getattr(one, "framework", None) == example.form]
    return (named or [one for one in findings if not isinstance(one, Fault)])[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.form for one in EXAMPLES])
def test_an_example_tells_what_it_says(example: Example) -> None:
    found = shown(told_by(example))

    expected = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in example.expect.items()
    }
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.form for one in EXAMPLES])
def test_an_example_tells_one_thing_of_its_kind(example: Example) -> None:
    kinds = [(type(one), getattr(one, "kind", None)) for one in read(example.line)]

    assert len(kinds) == len(set(kinds))


def test_every_form_has_an_example() -> None:
    shown = {one.form for one in EXAMPLES}

    assert {form.name for form in FORMS} - shown == {"nccl_warning"}


def test_every_family_has_an_example() -> None:
    told = {found.family for one in EXAMPLES if isinstance(found := told_by(one), Fault)}
    families = {tag for form in FORMS for tag, _ in form.families}

    assert {tag for tag in families - told if "nccl" not in tag} == set()


def test_names_are_unique() -> None:
    names = [form.name for form in FORMS]

    assert sorted(names) == sorted(set(names))
