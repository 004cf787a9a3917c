import struct
from errno import EINVAL, EPERM

import pytest

from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.sources.ethtool_netlink import EthtoolNetlink, LinkState
from flapd.sources.ethtool_statistics import STATISTICS
from flapd.sources.netlink_codec import attributes
from tests.sources.namespace import in_namespace
from tests.sources.netlink_bytes import RecordedKernel, attributes_of

CONTROL, FAMILY = 16, 21


def generic(kind: int, *pairs: tuple[int, bytes | int | str]) -> bytes:
    payload = bytes(4) + attributes_of(*pairs)
    return struct.pack("=IHHII", 16 + len(payload), kind, 0, 1, 0) + payload


def refused(errno: int) -> bytes:
    return struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -errno)


class MadeUpKernel(RecordedKernel):
    """Answers as a driver would that was not at hand."""

    def __init__(self, *answers: bytes) -> None:
        family = generic(CONTROL, (2, "ethtool"), (1, struct.pack("=H", FAMILY)))
        super().__init__({(CONTROL, False): [family]})
        self._in_turn = list(answers)

    def ask(self, kind: int, payload: bytes = b"", *, dump: bool = False):  # type: ignore[no-untyped-def]
        if kind == FAMILY:
            self.answers[FAMILY, False] = [self._in_turn.pop(0)]
        return super().ask(kind, payload, dump=dump)


def test_veth_says_whether_its_link_is_up_and_has_nothing_else() -> None:
    assert in_namespace("ethtool") == {
        "up": True,
        "down": False,
        "reason": None,
        "downs": None,
        "names": 10,
        "module": "ENOTSUP",
        "statistics": "ENOTSUP",
        "gone": "ENODEV",
        "gone_statistics": "ENODEV",
    }


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (
            [(2, b"\0"), (5, b"\4"), (6, b"\1"), (7, 12)],
            LinkState(is_up=False, reason="no cable", downs=12),
        ),
        ([(2, b"\0"), (5, b"\3")], LinkState(False, "bad signal integrity", None)),
        ([(2, b"\0"), (5, b"\x63")], LinkState(False, "state 99 of the driver", None)),
        ([(2, b"\1"), (7, (1 << 32) - 1)], LinkState(True, None, (1 << 32) - 1)),
        ([], LinkState(None, None, None)),
    ],
)
def test_a_link_says_why_it_is_down_and_how_often_it_was(
    told: list[tuple[int, bytes | int | str]], state: LinkState
) -> None:
    kernel = MadeUpKernel(generic(FAMILY, *told))

    assert EthtoolNetlink(kernel).link_state("ens1np0") == state


def test_how_often_a_link_was_down_must_be_asked_for() -> None:
    kernel = MadeUpKernel(generic(FAMILY))
    EthtoolNetlink(kernel).link_state("ens1np0")

    ((number, header),) = attributes(kernel.asked[-1][1][4:])
    assert number == 1
    assert dict(attributes(header)) == {2: b"ens1np0\0", 3: struct.pack("=I", 4)}


def test_an_older_kernel_says_why_without_how_often() -> None:
    """6.1 refuses the question for statistics."""
    down = generic(FAMILY, (2, b"\0"), (5, b"\4"))
    kernel = MadeUpKernel(refused(EINVAL), down, down)
    ethtool = EthtoolNetlink(kernel)

    expected = LinkState(is_up=False, reason="no cable", downs=None)
    assert ethtool.link_state("ens1np0") == expected
    assert ethtool.link_state("ens1np0") == expected


def test_what_is_refused_either_way_is_refused() -> None:
    kernel = MadeUpKernel(refused(EINVAL), refused(EINVAL), generic(FAMILY, (7, 3)))
    ethtool = EthtoolNetlink(kernel)

    with pytest.raises(OSError, match="Invalid argument"):
        ethtool.link_state("ens1np0")
    assert ethtool.link_state("ens1np0").downs == 3


def half(texts: dict[int, bytes], identifier: int = 0) -> bytes:
    raw = bytearray(128)
    raw[0] = identifier
    for at, text in texts.items():
        raw[at : at + 16] = text.ljust(16)
    return bytes(raw)


def test_a_module_is_asked_for_the_half_that_names_its_maker() -> None:
    maker = {20: b"Mellanox", 40: b"MCP1650-V001E30", 68: b"MT2219VS01234"}
    qsfp = MadeUpKernel(generic(FAMILY, (7, half({}, 0x11))), generic(FAMILY, (7, half(maker))))
    sfp = MadeUpKernel(generic(FAMILY, (7, half(maker, 0x03))))

    expected = ModuleIdentity("Mellanox", "MCP1650-V001E30", "MT2219VS01234")
    assert EthtoolNetlink(qsfp).module("ens1np0") == expected
    assert EthtoolNetlink(sfp).module("ens1np0") == expected


def test_without_the_capability_a_module_is_refused_and_not_absent() -> None:
    kernel = EthtoolNetlink(MadeUpKernel(refused(EPERM)))

    with pytest.raises(PermissionError):
        kernel.module("ens1np0")


def test_the_witness_of_infiniband_ports_is_among_the_statistics() -> None:
    assert "link_down_events_phy" in STATISTICS
