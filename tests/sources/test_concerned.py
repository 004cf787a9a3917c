from pathlib import Path

import pytest

from flapd.model.observation import KernelLine
from flapd.model.port import Port
from flapd.sources.concerned import Slots, is_of_line, is_of_verbs
from flapd.sources.verbs import VerbsHint

PCI, BRIDGE, OTHER = "0000:05:00.0", "0000:00:1c.0", "0000:05:00.1"
PORT = Port("a/1", "mlx5_0", 1, "Ethernet", pci=PCI, netdev="eth2", members=("eth3",), witnesses=())


@pytest.fixture
def slots(tmp_path: Path) -> Slots:
    place = tmp_path / f"devices/pci0000:00/{BRIDGE}/{PCI}"
    place.mkdir(parents=True)
    devices = tmp_path / "bus/pci/devices"
    devices.mkdir(parents=True)
    (devices / PCI).symlink_to(place)
    return Slots(tmp_path)


@pytest.mark.parametrize(
    ("line", "is_of"),
    [
        (KernelLine("link_down", None, PCI, "eth2"), True),
        (KernelLine("link_down", None, PCI, "eth3"), True),
        (KernelLine("link_down", None, PCI, "eth9"), False),
        (KernelLine("module", "Cable unplugged", PCI), True),
        (KernelLine("module", "Cable unplugged", OTHER), False),
        (KernelLine("pcie", "Slot(1): Link Down", BRIDGE), True),
        (KernelLine("pcie", "Slot(2): Link Down", "0000:00:1d.0"), False),
        (KernelLine("link_down", None, device="mlx5_0"), True),
        (KernelLine("link_down", None, device="mlx5_1"), False),
        (KernelLine("held", "waiting"), False),
    ],
)
def test_a_line_is_of_a_port_by_netdev_function_bridge_or_device(
    slots: Slots, line: KernelLine, is_of: bool
) -> None:
    assert is_of_line(line, PORT, slots) is is_of


def test_of_a_software_device_no_function_is_told(slots: Slots) -> None:
    port = Port("b/1", "rxe0", 1, "Ethernet", netdev="eth0")

    assert not is_of_line(KernelLine("firmware", "Fatal error 3 detected", PCI), port, slots)


@pytest.mark.parametrize(
    ("hint", "is_of"),
    [
        (VerbsHint("mlx5_0", 1, "port_error", 1), True),
        (VerbsHint("mlx5_0", None, "device_fatal", 1), True),
        (VerbsHint("mlx5_0", 2, "port_error", 1), False),
        (VerbsHint("mlx5_1", 1, "port_error", 1), False),
        (VerbsHint("mlx5_0", 1, "gid_change", 1), False),
    ],
)
def test_a_verbs_event_is_of_its_port_unless_it_says_nothing_of_the_link(
    hint: VerbsHint, is_of: bool
) -> None:
    assert is_of_verbs(hint, PORT) is is_of
