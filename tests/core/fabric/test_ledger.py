import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flapd.core.fabric.book import Book
from flapd.core.fabric.ledger import Ledger
from flapd.core.fabric.reading import LinkReading
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import Layer, Outage
from flapd.model.port import Port

MS = 1_000_000
APART = FlapSettings(merge_within=Duration(0), boot_grace=Duration(0))
"""Each down is a flap of its own."""

IB = Port("b8ce:f603:0012:3456/1", "mlx5_0", 1, "InfiniBand", witnesses=("counters/link_downed",))
ROCE = Port("b8ce:f603:0012:3457/1", "mlx5_1", 1, "Ethernet", witnesses=("net/carrier_down_count",))


def ledger_of(port: Port = IB, book: Book | None = None, settings: FlapSettings = APART) -> Ledger:
    return Ledger("node7", port, book or Book(), boot="boot1", settings=settings)


def read(
    at_ms: int,
    witness: int | None = None,
    *,
    up: bool | None = None,
    layer: Layer = "physical",
    first: bool = False,
) -> LinkReading:
    """A reading that took 2 ms."""
    return LinkReading(at_ms * MS, (at_ms + 2) * MS, witness, up, layer, first=first)


def play(ledger: Ledger, *readings: LinkReading) -> list[Outage]:
    return [outage for reading in readings for outage in ledger.observe(reading)]


def known_downs(ledger: Ledger) -> int:
    """In the totals, on the way there, or owed by the witness."""
    tally = ledger.book.tally
    on_the_way = sum(entry.downs for entry in tally.uncounted)
    return sum(tally.totals.downs.values()) + on_the_way + len(ledger.book.witness.debts)


def down_ms(outage: Outage) -> tuple[int, int]:
    return outage.down.earliest_ns // MS, outage.down.latest_ns // MS


def up_ms(outage: Outage) -> tuple[int, int]:
    assert outage.up is not None
    return outage.up.earliest_ns // MS, outage.up.latest_ns // MS


def test_the_first_reading_is_a_baseline_whatever_the_counter_says() -> None:
    assert play(ledger_of(), read(0, 17, up=True), read(100, 17, up=True)) == []


def test_an_outage_is_opened_and_closed_between_adjacent_readings() -> None:
    opened, closed = play(
        ledger_of(ROCE),
        read(0, 17, up=True),
        read(100, 17),
        read(200, 18, up=False),
        read(300, 18, up=False),
        read(400, 18, up=True),
    )

    assert (opened.status, opened.revision, opened.seen) == ("open", 1, "observed")
    assert down_ms(opened) == (100, 202)
    assert (closed.status, closed.revision, closed.id) == ("closed", 2, opened.id)
    assert up_ms(closed) == (300, 402)
    assert closed.down_ns_min == 98 * MS
    assert closed.down_ns_max == 302 * MS


def test_downs_that_no_state_showed_are_recorded_as_unseen() -> None:
    (outage,) = play(ledger_of(ROCE), read(0, 17, up=True), read(100, 20, up=True))

    assert (outage.seen, outage.count, outage.status) == ("unseen", 3, "closed")
    assert down_ms(outage) == up_ms(outage) == (0, 102)
    assert outage.down_ns_min == 0


def test_downs_while_nobody_watched_say_so() -> None:
    (outage,) = play(ledger_of(), read(0, 17, up=True), read(9000, 18, up=True, first=True))

    assert outage.seen == "while_away"


def test_a_down_seen_before_it_is_counted_is_counted_once() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 17, up=False),
        read(200, 18, up=False),
        read(300, 18, up=True),
        read(400, 18),
    )

    assert [(outage.status, outage.settled) for outage in told] == [
        ("open", False),
        ("closed", True),
    ]
    assert down_ms(told[0]) == (0, 102)
    assert told[-1].count == 1
    assert ledger.book.tally.totals.downs["link"] == 1
    assert ledger.witness.status == "live"


def test_a_debt_may_be_paid_after_the_port_is_up_again() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 17, up=False),
        read(200, 17, up=True),
        read(300, 18),
        read(400, 19, up=True),
    )

    assert sum(outage.count for outage in last_of(told)) == 2
    assert ledger.book.tally.totals.downs["link"] == 2


def last_of(told: list[Outage]) -> list[Outage]:
    """The last revision of each."""
    return list({outage.id: outage for outage in told}.values())


def test_two_downs_seen_before_either_is_counted_are_two_debts() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 17, up=False),
        read(200, 17, up=True),
        read(300, 17, up=False),
        read(400, 17, up=True),
        read(500, 19),
        read(600, 19, up=True),
    )

    assert [outage.count for outage in last_of(told)] == [1, 1]
    assert ledger.book.tally.totals.downs["link"] == 2
    assert ledger.witness.status == "live"


def test_a_witness_that_does_not_pay_its_debt_lies_and_the_down_still_counts() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 17, up=False),
        read(1200, 17, up=False),
        read(1300, 17, up=True),
        read(20_000, 17, up=False),
        read(21_200, 17, up=False),
        read(21_300, 17, up=True),
    )

    assert ledger.witness.status == "lying"
    assert ledger.book.tally.totals.downs["link"] == 2
    assert [outage.count for outage in last_of(told)] == [1, 1]


def test_a_witness_that_pays_late_was_not_lying_and_counts_nothing_twice() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 17, up=False),
        read(1200, 17, up=False),
        read(1500, 18, up=True),
        read(9000, 18, up=False),
        read(10_400, 19, up=True),
    )

    assert ledger.witness.status == "live"
    assert ledger.book.tally.totals.downs["link"] == 2
    assert [outage.count for outage in last_of(told)] == [1, 1]


def test_a_port_without_subnet_manager_is_down_logically() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 17, up=False, layer="logical"),
        read(5000, 17, up=True),
    )

    assert {(outage.layer, outage.cause) for outage in told} == {("logical", "subnet")}
    assert told[-1].settled
    assert ledger.witness.status == "unproven"
    assert ledger.book.tally.totals.downs == {"link": 0, "subnet": 1, "unknown": 0}


@pytest.mark.parametrize("layer", ["logical", None])
def test_a_down_first_seen_on_its_way_up_is_one_down_of_the_link(layer: Layer | None) -> None:
    """The state is read as INIT with the link up again, before the counter is read."""
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        LinkReading(70 * MS, 72 * MS, None, False, layer),
        read(100, 18, up=False, layer="logical"),
        read(200, 18, up=True),
    )

    (outage,) = last_of(told)
    assert (outage.count, outage.layer, outage.cause) == (1, "physical", "link")
    assert ledger.book.tally.totals.downs == {"link": 1, "subnet": 0, "unknown": 0}


def test_a_witness_that_cannot_be_read_owes_what_the_state_shows() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        *(
            read(at, None, up=up)
            for at, up in ((100, False), (200, True), (300, False), (400, True))
        ),
        read(8000, 19, up=True),
    )

    assert [outage.count for outage in last_of(told)] == [1, 1]
    assert ledger.book.tally.totals.downs["link"] == 2


def test_a_witness_unread_for_long_leaves_counting_to_the_state_and_is_paid_when_it_is_back() -> (
    None
):
    ledger = ledger_of()
    play(
        ledger,
        read(0, 17, up=True),
        read(100, None, up=False),
        read(200, None, up=True),
        read(10_200, None, up=True),
    )
    assert ledger.book.tally.totals.downs["link"] == 1
    assert ledger.book.outages == {}

    told = play(ledger, read(600_000, 19, up=True))

    assert [outage.count for outage in told] == [1]
    assert ledger.book.tally.totals.downs["link"] == 2


def test_a_link_that_goes_down_during_a_logical_outage_makes_it_physical() -> None:
    told = play(
        ledger_of(),
        read(0, 17, up=True),
        read(100, 17, up=False, layer="logical"),
        read(2000, 17, up=False, layer="logical"),
        read(2100, 18, up=False),
    )

    assert (told[-1].layer, told[-1].cause, told[-1].count) == ("physical", "link", 2)


def test_a_saturated_witness_leaves_counting_to_the_state_and_says_at_least() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 254, up=True),
        read(100, 255, up=True),
        read(200, 255, up=False),
        read(5000, 255, up=True),
    )

    assert ledger.witness.status == "saturated"
    assert [outage.count_at_least for outage in told] == [True, True, True]
    assert len({outage.id for outage in told}) == 2
    assert ledger.book.tally.totals.downs["link"] == 2


def test_a_counter_reset_by_somebody_is_no_flap_and_names_no_outage_twice() -> None:
    ledger = ledger_of()

    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 18, up=True),
        read(200, 0, up=True),
        *(read(300 + 100 * n, n, up=True) for n in range(1, 19)),
    )

    assert ledger.book.witness.resets == 1
    assert sum(outage.count for outage in told) == 1 + 18
    assert len({outage.id for outage in told}) == len(told)


def test_what_a_counter_counted_since_its_reset_is_at_least_what_happened() -> None:
    (outage,) = play(ledger_of(), read(0, 17, up=True), read(100, 2, up=True))

    assert (outage.count, outage.count_at_least) == (2, True)


def test_a_down_beside_a_reset_is_counted_and_nobody_lied() -> None:
    ledger = ledger_of()

    play(
        ledger,
        read(0, 17, up=True),
        read(50, None, up=False),
        read(100, 0, up=False),
        read(200, 0, up=True),
    )

    assert ledger.book.tally.totals.downs["link"] == 1
    assert ledger.witness.status == "unproven"


def test_a_netdev_made_anew_begins_its_count_anew() -> None:
    assert play(ledger_of(ROCE), read(0, 17, up=True), read(100, 2, up=True)) == []


def test_a_carrier_count_that_wraps_goes_on_counting() -> None:
    (outage,) = play(ledger_of(ROCE), read(0, 2**32 - 1, up=True), read(100, 1, up=True))

    assert outage.count == 2


def test_a_late_reading_of_what_is_over_tells_nothing() -> None:
    ledger = ledger_of()
    play(ledger, read(0, 17, up=True), read(100, 18, up=True), read(200, 18, up=True))

    assert play(ledger, read(50, 17, up=False)) == []


def test_an_outage_of_four_minutes_is_a_drop_also_while_it_is_open() -> None:
    ledger = ledger_of()
    play(ledger, read(0, 17, up=True), read(100, 18, up=False))

    (counted,) = play(ledger, read(240_101, 18, up=False))
    assert (counted.kind, counted.settled) == ("flap", True)
    (dropped,) = play(ledger, read(240_102, 18, up=False))
    (closed,) = play(ledger, read(300_000, 18, up=True))

    assert (dropped.kind, dropped.status) == ("drop", "open")
    assert (closed.kind, closed.status, closed.revision) == ("drop", "closed", 4)
    play(ledger, read(301_000, 18, up=True))
    assert (ledger.book.tally.totals.flaps, ledger.book.tally.totals.drops) == (0, 1)


def test_time_without_a_reading_makes_no_drop() -> None:
    ledger = ledger_of()
    told = play(
        ledger,
        read(0, 17, up=True),
        read(100, 18, up=False),
        read(300_000, 18, up=True),
    )

    assert told[-1].kind == "flap"
    assert told[-1].down_ns_min == 0


def test_a_debt_that_is_left_when_the_port_goes_is_counted() -> None:
    ledger = ledger_of()
    play(ledger, read(0, 17, up=True), read(100, 17, up=False), read(200, 17, up=True))

    ledger.lose_track(300 * MS)

    assert ledger.book.tally.totals.downs["link"] == 1


def test_a_port_that_was_never_up_is_not_an_outage() -> None:
    assert play(ledger_of(), read(0, 0, up=False), read(100, 0, up=False)) == []


def test_losing_track_ends_an_open_outage_as_lost_and_baselines_anew() -> None:
    ledger = ledger_of()
    play(ledger, read(0, 17, up=True), read(100, 18, up=False), read(1200, 18, up=False))

    lost, removed = ledger.lose_track(2000 * MS)

    assert (lost.status, lost.up, lost.revision) == ("lost", None, 3)
    assert (removed.status, removed.cause, removed.settled) == ("open", "removed", True)
    (back,) = play(ledger, read(2200, 40, up=True), read(2300, 40, up=True))
    assert (back.id, back.status, back.cause) == (removed.id, "closed", "driver_reload")
    assert sum(ledger.book.tally.totals.downs.values()) == 1


def test_a_port_that_comes_back_with_its_counter_at_zero_names_no_outage_twice() -> None:
    ledger = ledger_of()
    told = play(ledger, read(0, 1, up=True), read(100, 2, up=True))
    ledger.lose_track(2000 * MS)
    told += play(ledger, read(5000, 1, up=True), read(5100, 2, up=True))

    of_the_link = {outage.id for outage in told if outage.cause == "link"}
    assert len(of_the_link) == 2


def test_a_port_that_is_gone_is_not_told_again_by_what_was_read_before() -> None:
    ledger = ledger_of()
    play(ledger, read(0, 1, up=True), read(100, 2, up=True))
    ledger.lose_track(2000 * MS)

    assert play(ledger, read(0, 1, up=True), read(100, 2, up=True)) == []


def test_another_boot_begins_its_own_clock_and_its_own_names() -> None:
    ledger = ledger_of()
    told = play(ledger, read(9000, 1, up=True), read(9100, 2, up=False))

    told += ledger.begin_boot("boot2", -20_000 * MS)
    told += play(ledger, read(50, 1, up=True), read(150, 2, up=True))

    assert [outage.status for outage in told] == ["open", "lost", "open", "closed", "closed"]
    assert len({outage.id for outage in told}) == 3
    assert [outage.boot for outage in told] == ["boot1", "boot1", "boot2", "boot2", "boot2"]
    assert [outage.cause for outage in told] == ["link", "link", "boot", "boot", "link"]
    assert down_ms(told[3]) == (-10_900, 0)
    assert up_ms(told[3]) == (0, 52)
    assert ledger.book.tally.totals.downs == {"link": 2, "subnet": 0, "unknown": 0}
    assert ledger.book.tally.totals.ended == 0


def test_a_flap_has_the_same_id_after_a_lost_history() -> None:
    (known,) = play(ledger_of(), read(0, 17, up=True), read(100, 18, up=True))
    (again,) = play(ledger_of(), read(20, 17, up=True), read(104, 18, up=True))
    (other,) = play(ledger_of(), read(0, 18, up=True), read(100, 19, up=True))

    assert known.id == again.id != other.id


class Truth(msgspec.Struct):
    """An independent model: when the link went down and up, in ms."""

    changes: list[int]
    """Down, up, down, up, ..."""

    def downs_until(self, at: int) -> int:
        return sum(1 for change in self.changes[::2] if change <= at)

    def up_at(self, at: int) -> bool:
        return sum(1 for change in self.changes if change <= at) % 2 == 0


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    gaps = draw(st.lists(st.integers(1, 400), min_size=0, max_size=24))
    changes, now = [], 50
    for gap in gaps:
        now += gap
        changes.append(now)
    return Truth(changes)


@st.composite
def read_times(draw: st.DrawFn) -> list[tuple[int, bool]]:
    """When the port is read, and whether the state is read although nothing moved."""
    gaps = draw(st.lists(st.tuples(st.integers(3, 150), st.booleans()), min_size=2, max_size=80))
    times, now = [], 0
    for gap, state_too in gaps:
        now += gap
        times.append((now, state_too))
    return times


@given(truths(), read_times(), st.integers(0, 3), st.data())
def test_downs_balance_with_the_truth_and_every_interval_holds_its_edges(
    truth: Truth, times: list[tuple[int, bool]], start: int, data: st.DataObject
) -> None:
    """Whatever the schedule, the instants of reading, and the restarts in between."""
    assume(truth.up_at(times[0][0] + 3))  # a port that was never up is only listed
    assume(truth.downs_until(times[0][0] + 3) == 0)
    ledger = ledger_of(ROCE)
    told: list[Outage] = []
    last_count: int | None = None
    for at, state_too in times:
        if data.draw(st.booleans(), label="restart"):
            book = msgspec.msgpack.decode(msgspec.msgpack.encode(ledger.book), type=Book)
            ledger = ledger_of(ROCE, book)
        witness_at = at + data.draw(st.integers(0, 1), label="witness read after")
        state_at = witness_at + data.draw(
            st.integers(0, 2 - (witness_at - at)), label="state after"
        )
        count = start + truth.downs_until(witness_at)
        moved = count != last_count
        up = truth.up_at(state_at)
        reads_state = moved or state_too or ledger.open_outage is not None
        told += ledger.observe(
            LinkReading(at * MS, (at + 2) * MS, count, up if reads_state else None, "physical")
        )
        last_count = count

    outages = {outage.id: outage for outage in told}
    first_at = times[0][0] + 1
    last_at = times[-1][0] + 2
    counted = sum(outage.count for outage in outages.values())
    possible = {
        truth.downs_until(end) - truth.downs_until(begin)
        for begin in (first_at - 1, first_at, first_at + 1)
        for end in (last_at - 2, last_at - 1, last_at)
    }
    assert counted in possible
    assert known_downs(ledger) == counted
    for outage in outages.values():
        assert edges_are_inside(outage, truth)


def edges_are_inside(outage: Outage, truth: Truth) -> bool:
    """As many true downs as it counts begin in it, the first in its down interval."""
    end = outage.up.latest_ns if outage.up is not None else 10**18
    inside = [
        (down, up)
        for down, up in zip(truth.changes[::2], [*truth.changes[1::2], 10**9], strict=False)
        if outage.down.earliest_ns <= down * MS <= end
    ]
    if outage.count > len(inside):
        return False
    starts = [down for down, _ in inside if down * MS <= outage.down.latest_ns]
    if not starts:
        return False
    return outage.up is None or any(
        outage.up.earliest_ns <= up * MS <= outage.up.latest_ns for _, up in inside
    )


class LaggingPort(msgspec.Struct):
    """An independent model of an InfiniBand port whose counter moves late."""

    outages: list[tuple[int, int, bool, int]]
    """Down, up, whether the link itself went down, how long until that is counted; in ms."""

    def witness_at(self, at: int) -> int:
        counted = [down + lag for down, _, physical, lag in self.outages if physical]
        return sum(1 for moment in counted if moment <= at)

    def state_at(self, at: int) -> tuple[bool, Layer]:
        for down, up, physical, _ in self.outages:
            if down <= at < up:
                return False, "physical" if physical else "logical"
        return True, "physical"


@st.composite
def lagging_ports(draw: st.DrawFn) -> LaggingPort:
    now, outages = 20, []
    for _ in range(draw(st.integers(0, 8))):
        down = now + draw(st.integers(1, 1500))
        up = down + draw(st.integers(1, 1500))
        physical, lag = draw(st.booleans()), draw(st.integers(0, 900))
        outages.append((down, up, physical, lag))
        now = up
    return LaggingPort(outages)


@given(lagging_ports(), st.lists(st.tuples(st.integers(3, 400), st.booleans()), max_size=80))
def test_a_late_witness_is_settled_to_the_last_down(
    port: LaggingPort, gaps: list[tuple[int, bool]]
) -> None:
    """Downs seen early, late, or never, of link and subnet: each is counted once."""
    ledger = ledger_of()
    now = 0
    told = play(ledger, read(0, 0, up=True))
    tail = [(50, True)] * 12 * 25 + [(1500, True)] * 2
    for gap, reads_witness in gaps + tail:
        now += gap
        up, layer = port.state_at(now + 1)
        witness = port.witness_at(now) if reads_witness else None
        told += ledger.observe(LinkReading(now * MS, (now + 2) * MS, witness, up, layer))
        counted = sum(outage.count for outage in last_of(told))
        assert counted == known_downs(ledger)

    happened = [outage for outage in port.outages if outage[0] + outage[3] <= now - 1500]
    if len(happened) == len(port.outages):
        assert ledger.book.tally.totals.downs["link"] == sum(
            1 for _, _, physical, _ in happened if physical
        )
    assert ledger.witness.status in {"live", "unproven"}
    assert ledger.book.tally.totals.downs["subnet"] <= sum(
        1 for outage in port.outages if not outage[2]
    )


@given(st.lists(st.tuples(st.integers(0, 255), st.booleans(), st.booleans()), max_size=40))
def test_counts_and_totals_agree_whatever_a_counter_does(
    readings: list[tuple[int, bool, bool]],
) -> None:
    ledger = ledger_of()
    told: list[Outage] = []
    for number, (value, up, reads_witness) in enumerate(readings):
        told += play(ledger, read(100 * number, value if reads_witness else None, up=up))

    counted = sum(outage.count for outage in last_of(told))
    assert counted == known_downs(ledger)
    revisions = [(outage.id, outage.revision) for outage in told]
    assert len(set(revisions)) == len(revisions)


@pytest.mark.parametrize("first", [False, True])
def test_of_downs_before_a_port_was_switched_off_only_the_last_is_by_hand(first: bool) -> None:
    """Of a restart, too: what went while nobody watched went by itself."""
    ledger = ledger_of(ROCE)
    off = msgspec.structs.replace(read(200, 13, up=False, first=first), admin=True)

    told = play(ledger, read(0, 10, up=True), off, read(5000, 13, up=True))

    last = {outage.id: outage for outage in told}.values()
    assert [(o.cause, o.count, o.status) for o in last] == [
        ("link", 2, "closed"),
        ("admin", 1, "closed"),
    ]
    totals = ledger.book.tally.totals.downs
    assert (totals["link"], totals["admin"]) == (2, 1)


@pytest.mark.parametrize("more", [1, 3])
def test_an_outage_that_ended_unseen_before_a_port_was_switched_off_went_by_itself(
    more: int,
) -> None:
    ledger = ledger_of(ROCE)
    off = msgspec.structs.replace(read(200, 11 + more, up=False), admin=True)

    told = play(
        ledger,
        read(0, 10, up=True),
        read(100, 11, up=False),
        off,
        read(5000, 11 + more, up=True),
    )

    last = {outage.id: outage for outage in told}.values()
    assert [(o.cause, o.count, o.status) for o in last] == [
        ("link", more, "closed"),
        ("admin", 1, "closed"),
    ]
    totals = ledger.book.tally.totals.downs
    assert (totals["link"], totals["admin"]) == (more, 1)
