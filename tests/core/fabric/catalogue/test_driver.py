import pytest

from flapd.core.fabric.catalogue import driver_of, state_is_constant


@pytest.mark.parametrize(
    ("bound_to", "driver"),
    [
        ("mlx5_core", "mlx5"),
        ("mlx5_core.sf", "mlx5"),
        ("bnxt_en", "bnxt_re"),
        ("ice", "irdma"),
        ("hns3", "hns"),
        ("rdma_rxe", "rxe"),
        ("bnxt_re", "bnxt_re"),
        ("never_heard_of", "unknown"),
        (None, "unknown"),
    ],
)
def test_drivers_go_by_the_name_of_what_the_device_is_bound_to(
    bound_to: str | None, driver: str
) -> None:
    assert driver_of(bound_to).name == driver


def test_only_efa_says_active_whatever_happens() -> None:
    assert state_is_constant("efa")
    assert not state_is_constant("mlx5_core")
    assert not state_is_constant(None)


def test_a_context_is_kept_only_on_devices_that_can_be_removed_under_it() -> None:
    assert driver_of("mlx5_core").disassociates
    assert driver_of("bnxt_en").disassociates
    for driver in ("rdma_rxe", "siw", "efa", "hfi1", "never_heard_of", None):
        assert not driver_of(driver).disassociates


def test_an_ethernet_port_is_queried_under_the_lock_of_all_network_configuration() -> None:
    assert driver_of("bnxt_en").state_takes_rtnl
    assert not driver_of("mlx5_core").state_takes_rtnl


def test_counters_that_can_stand_still_are_known() -> None:
    frozen = [name for name in ("bnxt_en", "ice", "mlx5_core", "efa") if driver_of(name).freezes]

    assert frozen == ["bnxt_en", "ice"]
