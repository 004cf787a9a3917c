import pytest

from flapd.core.fabric.catalogue import (
    RETRANSMISSION_CAUSES,
    WITNESSES,
    all_counters,
    bits_of,
    commands_of,
    counter_of,
    counters_of,
    is_vouched_for,
    lag_of,
    refreshes_the_rest,
    rise_between,
    short_name,
    statistics_commands_of,
    stop_of,
    tier_of,
    transmitted_among,
    witnesses_among,
)

DRIVERS = ("mlx5", "mlx4", "bnxt_re", "irdma", "efa", "mana", "rxe", "hfi1", "hns", "erdma")
MLX5_SWEEP = ("hw_counters/rx_write_requests", "hw_counters/out_of_buffer")


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("counters/link_downed", 255),
        ("counters/link_error_recovery", 255),
        ("counters/symbol_error", 65535),
        ("counters/local_link_integrity_errors", 15),
        ("counters/excessive_buffer_overrun_errors", 15),
        ("counters/port_xmit_wait", 2**32 - 1),
        ("counters/port_xmit_data", None),
        ("hw_counters/local_ack_timeout_err", None),
        ("hw_counters/SwLinkDown,32", None),
        ("net/carrier_down_count", None),
        ("hw_counters/never_heard_of", None),
    ],
)
def test_counters_stop_where_the_kernel_says(name: str, stop: int | None) -> None:
    assert stop_of(name) == stop


def test_every_witness_can_be_counted_by_under_its_name_alone() -> None:
    assert all(rise_between(name, 1, 3) == 2 for name in WITNESSES)
    assert [bits_of(name) for name in WITNESSES] == [32, 32, 8, 32]
    assert lag_of("net/carrier_down_count") == 0
    assert lag_of("counters/link_downed") > 0


def test_what_is_not_known_is_read_with_its_kind_and_may_be_as_wide_as_files_go() -> None:
    assert tier_of("hw_counters/never_heard_of") == "slow"
    assert tier_of("counters/never_heard_of") == "rare"
    assert bits_of("hw_counters/never_heard_of") == 64
    assert counter_of("mlx5_core", "hw_counters/never_heard_of") is None


@pytest.mark.parametrize(
    ("driver", "file", "meaning"),
    [
        ("mlx5_core", "local_ack_timeout_err", "ack_timeout"),
        ("mlx5_core", "roce_adp_retrans_to", "adaptive_timeout"),
        ("mlx5_core", "rnr_nak_retry_err", "rnr_nak_received"),
        ("mlx4_core", "sq_num_tree", "retries_exhausted"),
        ("bnxt_en", "to_retransmits", "ack_timeout"),
        ("bnxt_en", "local_ack_timeout_err", "ack_timeout"),
        ("ice", "tcpRetransSegs", "retransmitted"),
        ("efa", "impaired_remote_conn_events", "path_impaired"),
        ("mana", "requester_readresp_psn_mismatch", "implied_nak"),
        ("rdma_rxe", "out_of_seq_request", "out_of_sequence"),
        ("hfi1", "RcDupRew", "duplicate"),
        ("hfi1", "SwLinkDown,32", "link_down"),
        ("hns3", "rx_cnp_pkt", "cnp_received"),
        ("erdma", "hw_rx_pps_limit_drop_cnt", "discard"),
    ],
)
def test_drivers_have_their_own_names_for_the_same(driver: str, file: str, meaning: str) -> None:
    counter = counter_of(driver, f"hw_counters/{file}")

    assert counter is not None
    assert counter.meaning == meaning


def test_a_name_of_one_driver_means_nothing_with_another() -> None:
    assert counter_of("efa", "hw_counters/local_ack_timeout_err") is None
    assert counter_of(None, "hw_counters/local_ack_timeout_err") is None
    assert counter_of(None, "counters/link_downed") is not None


def test_q_counters_of_mlx5_wrap_at_32_bits_and_those_of_congestion_do_not() -> None:
    q_counter = counter_of("mlx5_core", "hw_counters/packet_seq_err")
    congestion = counter_of("mlx5_core", "hw_counters/np_cnp_sent")

    assert q_counter is not None
    assert congestion is not None
    assert q_counter.rise(2**32 - 2, 3) == 5
    assert congestion.rise(2**32 - 2, 2**32 + 3) == 5


def test_representors_count_the_same_under_longer_names() -> None:
    plain = counter_of("mlx5_core", "hw_counters/out_of_sequence")
    representor = counter_of("mlx5_core", "hw_counters/vport_out_of_sequence")

    assert plain is not None
    assert representor is not None
    assert representor.name == "hw_counters/vport_out_of_sequence"
    assert (representor.metric, representor.meaning) == (plain.metric, plain.meaning)
    assert counter_of("mlx5_core", "hw_counters/vport_never_heard_of") is None


def test_what_soft_roce_calls_link_downed_counts_no_downs() -> None:
    counter = counter_of("rdma_rxe", "hw_counters/link_downed")

    assert counter is not None
    assert counter.meaning is None
    assert witnesses_among("rdma_rxe", "Ethernet", ["hw_counters/link_downed"]) == ()


def test_what_is_a_gauge_in_the_driver_is_one() -> None:
    gauges = [counter for counter in all_counters() if counter.kind == "gauge"]

    assert "hw_counters/active_qps" in [counter.name for counter in gauges]
    assert {counter.klass for counter in gauges} == {"state"}


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_driver_with_counters_has_one_of_each_name(driver: str) -> None:
    metrics = [counter.metric for counter in counters_of(driver).values()]

    assert any(name.startswith("hw_counters/") for name in counters_of(driver))
    assert len(set(metrics)) == len(metrics)


def test_one_metric_has_one_unit_and_one_kind_whichever_driver_fills_it() -> None:
    seen: dict[str, tuple[object, ...]] = {}
    for counter in all_counters():
        alike = (counter.kind, counter.klass, counter.scale, counter.meaning)
        assert seen.setdefault(counter.metric, alike) == alike


def test_metrics_are_names_in_snake_case() -> None:
    assert [
        counter.metric
        for counter in all_counters()
        if not counter.metric.replace("_", "a").isalnum()
        or counter.metric != counter.metric.lower()
    ] == []


@pytest.mark.parametrize(
    ("driver", "link_layer", "names", "witnesses"),
    [
        ("mlx5_core", "InfiniBand", WITNESSES, WITNESSES[2:]),
        ("mlx5_core", "Ethernet", WITNESSES, (WITNESSES[0], WITNESSES[3])),
        ("mlx5_core", "Ethernet", ("counters/link_downed",), ()),
        ("mlx4_core", "InfiniBand", WITNESSES[:3], ("counters/link_downed",)),
        ("mlx4_core", "Ethernet", ("counters/link_downed",), ()),
        ("hfi1", "InfiniBand", WITNESSES[:3], (WITNESSES[1], WITNESSES[2])),
        ("be2net", "Ethernet", ("counters/link_downed",), ()),
        ("efa", "Unknown", ("net/carrier_down_count",), ("net/carrier_down_count",)),
        ("efa", "Unknown", (), ()),
        (None, "InfiniBand", ("counters/link_downed",), ("counters/link_downed",)),
    ],
)
def test_downs_are_counted_by_what_the_driver_can_be_believed(
    driver: str | None, link_layer: str, names: tuple[str, ...], witnesses: tuple[str, ...]
) -> None:
    assert witnesses_among(driver, link_layer, names) == witnesses


def test_only_what_is_known_to_count_every_down_is_vouched_for() -> None:
    assert [name for name in WITNESSES if not is_vouched_for(name)] == [
        "ethtool/link_down_events_phy"
    ]


@pytest.mark.parametrize(
    ("driver", "link_layer", "names", "commands"),
    [
        ("mlx5_core", "InfiniBand", ("state",), 5),
        ("mlx5_core", "InfiniBand", ("state", "phys_state", "rate"), 15),
        ("mlx5_core", "Ethernet", ("state",), 2),
        ("mlx5_core", "InfiniBand", ("counters/link_downed", "counters/port_xmit_data"), 2),
        ("mlx5_core", "InfiniBand", MLX5_SWEEP, 3),
        ("mlx5_core", "InfiniBand", MLX5_SWEEP[::-1], 6),
        ("mlx5_core", "InfiniBand", ("hw_counters/vport_rx_write_requests", "hw_counters/x"), 3),
        ("bnxt_en", "Ethernet", ("state", "hw_counters/a", "hw_counters/b"), 2),
        ("efa", "Unknown", ("state", "hw_counters/a"), 5),
        ("rdma_rxe", "Ethernet", ("state", "hw_counters/a", "net/carrier_down_count"), 0),
        ("mlx5_core", "Ethernet", ("net/carrier_down_count", "net/carrier"), 0),
        ("nobody_knows", "InfiniBand", ("state", "counters/a", "hw_counters/a"), 3),
    ],
)
def test_reading_costs_commands_of_the_firmware(
    driver: str, link_layer: str, names: tuple[str, ...], commands: int
) -> None:
    assert commands_of(driver, link_layer, names) == commands


def test_counters_told_at_once_cost_one_refresh_in_whatever_order() -> None:
    names = ("state", *MLX5_SWEEP[::-1])

    assert commands_of("mlx5_core", "InfiniBand", names, at_once=True) == 5 + 3


def test_statistics_of_a_netdev_are_dear_and_those_of_ipoib_less() -> None:
    assert statistics_commands_of("mlx5_core", "Ethernet") == 40
    assert statistics_commands_of("mlx5_core", "InfiniBand") == 10
    assert statistics_commands_of("nobody_knows", "Ethernet") == 1


def test_a_driver_without_data_counters_has_others_of_what_was_sent() -> None:
    files = ("counters/port_xmit_data", "hw_counters/tx_bytes")

    assert transmitted_among("bnxt_en", files) == "counters/port_xmit_data"
    assert transmitted_among("bnxt_en", files[1:]) == "hw_counters/tx_bytes"
    assert transmitted_among("mlx5_core", files[1:]) is None


def test_every_counter_of_what_was_sent_is_one_of_traffic() -> None:
    for driver in DRIVERS:
        known = counters_of(driver)
        name = transmitted_among(driver, [*known][len(counters_of(None)) :])
        assert name is None or known[name].klass == "traffic"


def test_causes_to_send_again_are_counted_by_some_driver() -> None:
    meanings = {counter.meaning for counter in all_counters()}

    assert set(RETRANSMISSION_CAUSES) <= meanings


def test_people_know_counters_by_their_file() -> None:
    assert short_name("counters/link_downed") == "link_downed"


def test_what_refreshes_the_others_is_known_of_the_driver_that_has_such_a_counter() -> None:
    assert refreshes_the_rest("mlx5_core", "hw_counters/rx_write_requests")
    assert refreshes_the_rest("mlx5_core", "hw_counters/vport_rx_write_requests")
    assert not refreshes_the_rest("mlx5_core", "hw_counters/out_of_buffer")
    assert not refreshes_the_rest("mana", "hw_counters/rx_write_requests")
