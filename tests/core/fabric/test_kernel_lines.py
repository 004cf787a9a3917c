"""Texts as the kernel's source has them (Linux 6.12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fabric.kernel_lines import (
    LONGEST_REASON,
    Record,
    parse_line,
    parse_record,
)
from flapd.model.observation import KernelLine

PCI = "0000:05:00.0"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"mlx5_core {PCI} eth2: Link down", KernelLine("link_down", None, PCI, "eth2")),
        (f"mlx5_core {PCI} eth2: Link up", KernelLine("link_up", None, PCI, "eth2")),
        (
            f"bnxt_en {PCI} ens1np0: NIC Link is Down",
            KernelLine("link_down", None, PCI, "ens1np0"),
        ),
        (
            f"bnxt_en {PCI} ens1np0: NIC Link is Up, 100000 Mbps full duplex, Flow control: none",
            KernelLine("link_up", None, PCI, "ens1np0"),
        ),
        (
            f"ice {PCI} ens2: NIC Link is up 100 Gbps Full Duplex, Requested FEC: RS-FEC",
            KernelLine("link_up", None, PCI, "ens2"),
        ),
        ("mlx4_en: eth3: Link Down", KernelLine("link_down", None, None, "eth3")),
        (
            f"hfi1 {PCI}: hfi1_0: 8051: Link down, reason: host not ready",
            KernelLine("link_down", ", reason: host not ready", PCI, None, "hfi1_0"),
        ),
        (
            f"hfi1 {PCI}: hfi1_0: Link error: Excessive buffer overrun",
            KernelLine("link_down", "Excessive buffer overrun", PCI, None, "hfi1_0"),
        ),
        ("infiniband rxe0: set down", KernelLine("link_down", None, device="rxe0")),
        ("infiniband rxe0: set active", KernelLine("link_up", None, device="rxe0")),
        (
            f"mlx5_core {PCI}: Port module event: module 0, Cable unplugged",
            KernelLine("module", "Cable unplugged", PCI),
        ),
        (
            f"mlx5_core {PCI}: Port module event[error]: module 1, Cable error, High Temperature",
            KernelLine("module", "Cable error, High Temperature", PCI),
        ),
        (
            f"mlx5_core {PCI}: High temperature on sensors with bit set 0 4",
            KernelLine("temperature", "High temperature on sensors with bit set 0 4", PCI),
        ),
        (
            (
                f"mlx5_core {PCI}: poll_health:820:(pid 0): device's health compromised -"
                " reached miss count"
            ),
            KernelLine("firmware", "device's health compromised - reached miss count", PCI),
        ),
        (
            f"mlx5_core {PCI}: poll_health:800:(pid 0): Fatal error 3 detected",
            KernelLine("firmware", "Fatal error 3 detected", PCI),
        ),
        (
            (
                f"mlx5_core {PCI}: wait_func:1184:(pid 99): ACCESS_REG(0x805) timeout."
                " Will cause a leak of a command resource"
            ),
            KernelLine(
                "firmware",
                "ACCESS_REG(0x805) timeout. Will cause a leak of a command resource",
                PCI,
            ),
        ),
        (
            f"pcieport 0000:00:01.0: AER: Multiple Corrected error message received from {PCI}",
            KernelLine("pcie", f"Multiple Corrected error message received from {PCI}", PCI),
        ),
        (
            (
                f"mlx5_core {PCI}: PCIe Bus Error: severity=Corrected, type=Physical Layer,"
                " (Receiver ID)"
            ),
            KernelLine(
                "pcie",
                "PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
                PCI,
            ),
        ),
        (
            "pcieport 0000:00:1c.0: pciehp: Slot(1): Link Down",
            KernelLine("pcie", "Slot(1): Link Down", "0000:00:1c.0"),
        ),
        (
            "unregister_netdevice: waiting for v0 to become free. Usage count = 2",
            KernelLine(
                "held",
                "unregister_netdevice: waiting for v0 to become free. Usage count = 2",
                netdev="v0",
            ),
        ),
    ],
)
def test_a_line_tells_whose_link_or_card_it_is_and_why(text: str, line: KernelLine) -> None:
    assert parse_line(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "eth2: Link down",
        f"mlx5_core {PCI}: PCI Link up",
        f"mlx5_core {PCI} eth2: Link downgraded",
        (
            f"mlx5_core {PCI}: mlx5_cmd_out_err:838:(pid 7): ACCESS_REG(0x805) op_mod(0x1) failed,"
            " status bad operation(0x2), syndrome (0x9a6171), err(-22)"
        ),
        "infiniband rxe0: added v0",
        "",
    ],
    ids=["names no driver", "of the slot", "not down", "caused by polling", "no link", "empty"],
)
def test_a_line_that_tells_nothing_of_a_link_is_left(text: str) -> None:
    assert parse_line(text) is None


def test_a_reason_is_bounded() -> None:
    line = parse_line(f"mlx5_core {PCI}: Port module event: module 0, {'x' * 5000}")

    assert line is not None
    assert line.reason == "x" * LONGEST_REASON


def test_a_record_has_a_number_a_stamp_and_its_author() -> None:
    raw = b"6,1234,567890123,-;mlx5_core 0000:05:00.0 eth2: Link down\n SUBSYSTEM=pci\n"

    assert parse_record(raw) == Record(
        1234, 567890123, "mlx5_core 0000:05:00.0 eth2: Link down", by_kernel=True
    )


def test_what_a_process_wrote_is_not_the_kernels() -> None:
    record = parse_record(b"12,7,9,-,caller=T1;infiniband mlx5_0: set down\n")

    assert record is not None
    assert not record.by_kernel


@given(st.binary(max_size=300))
def test_any_bytes_are_a_record_or_none(raw: bytes) -> None:
    parse_record(raw)


@given(st.text(max_size=200), st.sampled_from([f"mlx5_core {PCI}: ", "infiniband mlx5_0: ", ""]))
def test_any_text_is_a_line_or_none(text: str, before: str) -> None:
    line = parse_line(before + text)

    assert line is None or len(line.reason or "") <= LONGEST_REASON
