import pytest

from flapd.core.fabric.catalogue import CATALOGUE, rise_between, stop_of, tier_of


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("counters/link_downed", 255),
        ("counters/link_error_recovery", 255),
        ("counters/symbol_error", 65535),
        ("counters/local_link_integrity_errors", 15),
        ("counters/excessive_buffer_overrun_errors", 15),
        ("counters/port_xmit_wait", 2**32 - 1),
        ("hw_counters/local_ack_timeout_err", None),
        ("net/carrier_down_count", None),
        ("hw_counters/never_heard_of", None),
    ],
)
def test_counters_stop_where_the_kernel_says(name: str, stop: int | None) -> None:
    assert stop_of(name) == stop


@pytest.mark.parametrize(
    ("name", "last", "value", "rise"),
    [
        ("counters/link_downed", 3, 5, 2),
        ("counters/link_downed", 5, 3, None),
        ("counters/link_downed", 254, 255, 1),
        ("net/carrier_down_count", 2**32 - 1, 0, 1),
        ("net/carrier_down_count", 7, 1, None),
        ("hw_counters/packet_seq_err", 2**32 - 2, 3, 5),
    ],
)
def test_a_fall_is_a_wrap_or_a_reset(name: str, last: int, value: int, rise: int | None) -> None:
    assert rise_between(name, last, value) == rise


def test_metric_names_are_unique() -> None:
    metrics = [counter.metric for counter in CATALOGUE.values()]

    assert len(set(metrics)) == len(metrics)


def test_unknown_hardware_counters_are_read_with_their_kind() -> None:
    assert tier_of("hw_counters/never_heard_of") == "slow"
    assert tier_of("counters/never_heard_of") == "rare"
