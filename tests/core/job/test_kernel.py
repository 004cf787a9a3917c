"""Lines of the kernel's log are evidence where they are about a card of ours."""

import pytest

from flapd.model.fault import Fault
from flapd.model.observation import KernelHint, KernelLine, PortSeen
from flapd.model.port import Port
from tests.core.job.node import Node, ns, of, unix

CARD = Port("guid-9/1", "mlx5_9", 1, "Ethernet", pci="0000:17:00.0", netdev="eth9")
REASON = "device's health compromised - reached miss count"


def told(line: KernelLine) -> list[Fault]:
    node = Node()
    node.take(PortSeen(CARD, 0))
    node.job(1.0, ports={CARD.key: "queue_pair"})
    node.take(KernelHint(line, ns(4.0), ns(4.2)))
    return of(Fault, node.tick(5.0))


@pytest.mark.parametrize(
    "line",
    [
        KernelLine("firmware", REASON, pci=CARD.pci),
        KernelLine("firmware", REASON, netdev="eth9"),
        KernelLine("firmware", REASON, device="mlx5_9"),
    ],
)
def test_a_card_in_trouble_is_a_fault_of_the_job_that_uses_it(line: KernelLine) -> None:
    (fault,) = told(line)

    assert (fault.kind, fault.hca, fault.text, fault.job) == ("kernel", "mlx5_9", REASON, "4711")
    assert (fault.time_ns, fault.primary) == (unix(4.0), False)


@pytest.mark.parametrize(
    "line",
    [
        KernelLine("pcie", "PCIe Bus Error: severity=Corrected", pci="0000:99:00.0"),
        KernelLine("firmware", REASON),
        KernelLine("link_down", None, netdev="eth9"),
        KernelLine("module", "Cable unplugged", pci=CARD.pci),
    ],
)
def test_what_is_about_another_card_or_a_link_is_none(line: KernelLine) -> None:
    assert told(line) == []
