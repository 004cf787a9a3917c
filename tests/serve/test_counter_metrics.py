"""Which counters are exported, under which names; of ports as a survey sees them."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from prometheus_client.core import Metric

from flapd.core.fabric.view import PortView
from flapd.serve.counter_metrics import counter_families
from flapd.serve.port_metrics import port_families
from flapd.serve.settings import CounterChoice
from flapd.sources.settings import PortsSettings
from flapd.sources.survey import survey
from tests.sources.shapes import (
    BNXT_RE,
    EFA,
    HFI1,
    MANA,
    MLX4_IB,
    MLX5_BOND,
    MLX5_VF,
    Device,
)
from tests.trees import lay_out


def views(sysfs: Path, *devices: Device) -> list[PortView]:
    for device in devices:
        device.lay_out(sysfs)
    return survey(sysfs, PortsSettings(virtual_functions=True))


def samples(families: Iterable[Metric]) -> dict[str, float]:
    """`name{value,value}` of the labels besides the port's -> value."""
    found = {}
    for family in families:
        for sample in family.samples:
            others = [v for k, v in sample.labels.items() if k not in {"device", "port"}]
            found[sample.name + (f"{{{','.join(others)}}}" if others else "")] = sample.value
    return found


def exported(ports: list[PortView], choice: CounterChoice = "errors") -> dict[str, float]:
    return samples(counter_families(ports, choice))


def test_errors_are_exported_by_default_and_traffic_is_not(tmp_path: Path) -> None:
    found = exported(views(tmp_path, MLX5_BOND))

    assert found["flapd_port_local_ack_timeout_errors_total"] == 1
    assert found["flapd_port_link_downed_total"] == 1
    assert "flapd_port_port_data_transmitted_bytes_total" not in found
    assert "flapd_port_rx_write_requests_total" not in found


def test_all_of_them_are_exported_where_that_is_asked_for(tmp_path: Path) -> None:
    found = exported(views(tmp_path, MLX5_BOND), "all")

    assert found["flapd_port_port_data_transmitted_bytes_total"] == 4
    assert found["flapd_port_rx_write_requests_total"] == 1
    assert found["flapd_port_link_downed_total"] == 1


@pytest.mark.parametrize(
    "glob", ["counters/port_*_data", "port_xmit_data", "port_data_transmitted_*"]
)
def test_a_glob_means_the_file_or_its_metric(tmp_path: Path, glob: str) -> None:
    found = exported(views(tmp_path, MLX5_BOND), (glob,))

    assert "flapd_port_port_data_transmitted_bytes_total" in found
    assert "flapd_port_link_downed_total" not in found


def test_each_driver_says_why_its_port_sent_again(tmp_path: Path) -> None:
    for device, causes in (
        (BNXT_RE, {"ack_timeout": 1, "sequence_nak": 1}),
        (EFA, {"ack_timeout": 1, "retransmitted": 1}),
        (HFI1, {"ack_timeout": 1, "retransmitted": 1}),
    ):
        ports = views(tmp_path / device.name, device)

        assert {
            name: value for name, value in exported(ports).items() if "retransmissions" in name
        } == {f"flapd_port_retransmissions_total{{{c}}}": v for c, v in causes.items()}


def test_two_counters_of_one_cause_are_added(tmp_path: Path) -> None:
    names = ("requester_implicit_nak", "requester_readresp_psn_mismatch")
    ports = views(tmp_path, msgspec.structs.replace(MANA, hw_counters=names))

    assert exported(ports)["flapd_port_retransmissions_total{implied_nak}"] == 2


def test_causes_are_told_whichever_counters_are_exported(tmp_path: Path) -> None:
    ports = views(tmp_path, MLX5_BOND)

    assert exported(ports, ()) == {"flapd_port_retransmissions_total{ack_timeout}": 1}


def test_what_the_catalogue_does_not_know_is_exported_as_it_is(tmp_path: Path) -> None:
    found = exported(views(tmp_path, HFI1))

    assert found["flapd_port_driver_counter{RxHdrOvr}"] == 1
    assert found["flapd_port_sw_link_down_total"] == 1
    assert not any("lifespan" in name or "flags" in name for name in found)


def test_a_gauge_of_the_driver_is_a_gauge(tmp_path: Path) -> None:
    families = list(counter_families(views(tmp_path, BNXT_RE), "all"))

    assert {f.name: f.type for f in families if "active_qps" in f.name} == {
        "flapd_port_active_qps": "gauge"
    }


def test_a_representor_counts_into_the_same_metric(tmp_path: Path) -> None:
    found = exported(views(tmp_path, MLX5_VF))

    assert found["flapd_port_out_of_sequence_packets_received_total"] == 1


def test_no_series_is_told_twice_even_where_two_files_say_the_same(tmp_path: Path) -> None:
    both = ("out_of_sequence", "vport_out_of_sequence")
    ports = views(tmp_path, msgspec.structs.replace(MLX5_VF, hw_counters=both))

    (family,) = [f for f in counter_families(ports, "all") if "out_of_sequence" in f.name]

    assert len(family.samples) == 1


def test_a_counter_at_its_stop_is_told_apart_from_one_that_counts(tmp_path: Path) -> None:
    MLX4_IB.lay_out(tmp_path)
    port = tmp_path / "class/infiniband/mlx4_0/ports/1"
    lay_out(port, {"counters/link_downed": "255\n"})

    ports = survey(tmp_path, PortsSettings(include=("mlx4_0/1",)))
    found = exported(ports)

    assert found["flapd_port_counter_saturated{link_downed}"] == 1
    assert found["flapd_port_counter_saturated{symbol_error}"] == 0
    assert "flapd_port_counter_saturated{sq_num_to}" not in found


def test_what_cannot_be_read_has_no_sample(tmp_path: Path) -> None:
    MLX5_BOND.lay_out(tmp_path)
    port = tmp_path / "class/infiniband/mlx5_bond_0/ports/1"
    lay_out(port, {"counters/symbol_error": "N/A (no PMA)\n"})

    assert "flapd_port_symbol_error_total" not in exported(survey(tmp_path, PortsSettings()))


def test_no_counter_takes_the_name_of_another_metric(tmp_path: Path) -> None:
    devices = (BNXT_RE, EFA, HFI1, MLX4_IB)
    names = [f.name for f in port_families(views(tmp_path, *devices), "all")]

    assert len(set(names)) == len(names)
