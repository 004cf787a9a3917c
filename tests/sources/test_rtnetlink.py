"""Against the real kernel, in a network namespace: veth tells every edge at once."""

from tests.sources.namespace import in_namespace


def test_every_flap_is_in_the_counts_and_no_count_ever_falls() -> None:
    told = in_namespace("flaps")

    assert told["after"] == [told["before"][0] + 20, told["before"][1] + 20]
    downs = [hint["carrier_downs"] for hint in told["hints"]]
    assert downs == sorted(downs)
    assert (downs[0], downs[-1]) == (told["before"][0], told["after"][0])
    assert {hint["netdev"] for hint in told["hints"]} == {"v0"}
    assert len({hint["index"] for hint in told["hints"]}) == 1


def test_only_what_was_asked_for_says_when_counts_had_not_counted_yet() -> None:
    told = in_namespace("flaps")
    hints = told["hints"]

    (asked,) = (hint for hint in hints if hint["asked_ns"] is not None)
    assert asked["asked_ns"] <= asked["monotonic_ns"]
    assert [asked["carrier_downs"], asked["carrier_ups"]] == told["before"]
    received = [hint["monotonic_ns"] for hint in hints]
    assert received == sorted(received)


def test_a_netdev_set_down_by_hand_is_told_from_one_without_a_carrier() -> None:
    *_, last = in_namespace("set_down")

    assert last["present"]
    assert not last["flags"] & 1
    assert last["operstate"] == "DOWN"


def test_where_more_is_told_than_there_is_room_for_everything_is_asked_anew() -> None:
    told = in_namespace("more_than_there_is_room_for")

    assert told["overruns"] >= 1
    assert told["asked"] is not None


def test_a_netdev_made_anew_is_told_as_another() -> None:
    hints = in_namespace("made_anew")

    gone = next(place for place, hint in enumerate(hints) if not hint["present"])
    before = {hint["index"] for hint in hints[: gone + 1]}
    after = {hint["index"] for hint in hints[gone + 1 :]}
    assert len(before) == len(after) == 1
    assert before.isdisjoint(after)


def test_only_what_is_followed_is_told_and_that_can_change() -> None:
    told = in_namespace("followed_later")

    assert set(told) == {"v0", "v1"}
    assert "v1" not in told[told.index("v0") :]


def test_of_a_sysfs_with_other_netdevs_of_the_same_name_nothing_is_told() -> None:
    assert in_namespace("strangers") == {
        "a": {"v0": "the kernel knows another v0 here, or none"},
        "b": {"v0": "the kernel knows another v0 here, or none"},
        "c": {"v0": "paths.sysfs does not say which netdev v0 is"},
    }
