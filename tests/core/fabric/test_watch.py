import pytest

from flapd.core.fabric.record import PortRecord
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.watch import PortWatch
from flapd.model.duration import Duration
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    Sample,
)
from flapd.model.port import Port

MS = 1_000_000
NOW_NS = 600_000 * MS
APART = FlapSettings(merge_within=Duration(0), boot_grace=Duration(0))
DOWNS, UPS, CARRIER = "net/carrier_down_count", "net/carrier_up_count", "net/carrier"

ROCE = Port("guid-b/1", "mlx5_1", 1, "Ethernet", netdev="eth2", witnesses=(DOWNS,))
IB = Port("guid-a/1", "mlx5_0", 1, "InfiniBand", witnesses=("counters/link_downed",))


def watch_of(port: Port) -> PortWatch:
    watch = PortWatch("node7", PortRecord(port), boot="boot1", settings=APART)
    watch.seen(port, 0)
    return watch


def play(watch: PortWatch, sample: Sample) -> list[Outage]:
    return [event for event in watch.observe(sample) if isinstance(event, Outage)]


def sample(at_ms: int, reads: int, **changed: int) -> Sample:
    values = {name.replace("__", "/"): value for name, value in changed.items()}
    return Sample("", at_ms * MS, (at_ms + 2) * MS, reads, values)


CARRIER_READ = READ_WITNESS | READ_CARRIER | READ_FIRST


def test_the_counts_alone_tell_the_carrier_once_it_was_read_with_them() -> None:
    watch = watch_of(ROCE)
    watch.observe(
        sample(0, CARRIER_READ, net__carrier=1, net__carrier_down_count=3, net__carrier_up_count=4)
    )

    (opened,) = play(watch, sample(100, READ_WITNESS, net__carrier_down_count=4))
    (closed,) = play(watch, sample(200, READ_WITNESS, net__carrier_up_count=5))

    assert (opened.status, opened.seen) == ("open", "observed")
    assert (closed.status, closed.count) == ("closed", 1)


def test_a_lagging_state_does_not_contradict_the_carrier_counts() -> None:
    """Linkwatch tells the RDMA device of a netdev's carrier up to a second late."""
    watch = watch_of(ROCE)
    watch.observe(
        sample(0, CARRIER_READ, net__carrier=1, net__carrier_down_count=3, net__carrier_up_count=3)
    )
    watch.observe(sample(100, READ_WITNESS, net__carrier_down_count=4, net__carrier_up_count=4))

    assert play(watch, sample(300, READ_STATE, state=1, phys_state=3)) == []
    assert watch.view(NOW_NS).up is True


def test_a_port_whose_carrier_is_off_at_first_is_down_and_no_outage() -> None:
    watch = watch_of(ROCE)

    told = play(
        watch,
        sample(0, CARRIER_READ, net__carrier=0, net__carrier_down_count=1, net__carrier_up_count=0),
    )
    told += play(watch, sample(100, READ_WITNESS, net__carrier_up_count=1))

    assert told == []
    assert watch.view(NOW_NS).up is True


def test_without_a_readable_carrier_the_state_tells() -> None:
    watch = watch_of(ROCE)
    watch.observe(
        sample(0, READ_WITNESS | READ_FIRST, net__carrier_down_count=3, net__carrier_up_count=3)
    )
    watch.observe(sample(10, READ_STATE, state=4, phys_state=5))

    (opened,) = play(watch, sample(500, READ_STATE, state=1, phys_state=3))

    assert opened.evidence == ("state",)


@pytest.mark.parametrize(
    ("physical", "layer", "cause"),
    [(5, "logical", "subnet"), (2, "physical", "link"), (None, "physical", "unknown")],
)
def test_the_physical_state_tells_which_layer_is_down(
    physical: int | None, layer: str, cause: str
) -> None:
    watch = watch_of(IB)
    watch.observe(
        sample(0, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=3, state=4)
    )
    changed = {"state": 2} if physical is None else {"state": 2, "phys_state": physical}

    (opened,) = play(watch, sample(500, READ_STATE, **changed))

    assert (opened.layer, opened.cause) == (layer, cause)


def test_what_cannot_be_read_is_named_and_has_no_value() -> None:
    watch = watch_of(IB)
    watch.observe(sample(0, READ_WITNESS | READ_FIRST, counters__link_downed=3, state=4))
    watch.observe(Sample("", 100 * MS, 101 * MS, 0, {}, {"counters/symbol_error": "EINVAL"}))
    assert watch.view(NOW_NS).readable is True

    watch.observe(Sample("", 200 * MS, 201 * MS, 0, {}, {"counters/link_downed": "EIO"}))

    view = watch.view(NOW_NS)
    assert view.errors == {"counters/symbol_error": "EINVAL", "counters/link_downed": "EIO"}
    assert "counters/link_downed" not in view.values
    assert (view.readable, view.up) == (False, None)


def test_an_unreadable_port_is_readable_again_with_the_next_reading() -> None:
    watch = watch_of(IB)
    watch.observe(
        sample(0, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=3, state=4)
    )
    watch.observe(Sample("", 100 * MS, 101 * MS, 0, {}, {"counters/link_downed": "EIO"}))

    told = play(watch, sample(200, READ_WITNESS, counters__link_downed=4))

    assert watch.view(NOW_NS).readable is True
    assert sum(outage.count for outage in told) == 1


def test_another_netdev_begins_a_new_count() -> None:
    watch = watch_of(ROCE)
    watch.observe(
        sample(0, CARRIER_READ, net__carrier=1, net__carrier_down_count=3, net__carrier_up_count=3)
    )
    watch.seen(Port("guid-b/1", "mlx5_1", 1, "Ethernet", netdev="eth5", witnesses=(DOWNS,)), 50)

    told = play(
        watch,
        sample(
            100, CARRIER_READ, net__carrier=1, net__carrier_down_count=9, net__carrier_up_count=9
        ),
    )

    assert told == []


def test_a_sample_that_spans_several_sweeps_has_read_until_its_end() -> None:
    """After a restart the ring must not tell again what it already held."""
    watch = watch_of(IB)
    watch.observe(
        sample(0, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=3, state=4)
    )
    watch.observe(Sample("", 100 * MS, 900 * MS, READ_WITNESS, {"counters/link_downed": 5}))

    assert watch.record.book.read_until_ns == 900 * MS


def test_another_device_with_the_same_identity_does_not_continue_its_count() -> None:
    watch = watch_of(IB)
    watch.observe(
        sample(0, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=3, state=4)
    )
    watch.seen(
        Port(
            IB.key,
            "mlx5_7",
            1,
            "InfiniBand",
            pci="0000:5e:00.0",
            witnesses=("counters/link_downed",),
        ),
        50,
    )

    told = play(
        watch, sample(100, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=9, state=4)
    )

    assert told == []


def test_what_is_not_read_any_more_has_no_value() -> None:
    watch = watch_of(IB)
    watch.observe(
        sample(0, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=3, state=4)
    )

    watch.not_read()

    view = watch.view(NOW_NS)
    assert (view.up, view.readable, view.witness_value, view.values) == (None, False, None, {})
    assert view.errors == {"counters/link_downed": "not read", "state": "not read"}


def test_a_debt_left_by_another_netdev_is_settled_and_told() -> None:
    watch = watch_of(IB)
    watch.observe(
        sample(0, READ_WITNESS | READ_STATE | READ_FIRST, counters__link_downed=3, state=4)
    )
    (opened,) = play(watch, sample(500, READ_STATE, state=1, phys_state=2))

    watch.seen(
        Port(IB.key, "mlx5_0", 1, "InfiniBand", pci="0000:5e:00.0", witnesses=IB.witnesses),
        600 * MS,
    )
    (told,) = play(watch, sample(1_600, READ_STATE, state=4, phys_state=5))

    assert (opened.settled, told.settled, told.revision) == (False, True, 2)
    assert watch.view(NOW_NS).totals.downs["link"] == 1
