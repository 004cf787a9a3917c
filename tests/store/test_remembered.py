from pathlib import Path

from flapd.model.observation import READ_STATE, READ_WITNESS, Sample
from flapd.store.remembered import Known, remembered_samples
from flapd.store.ring import RingWriter, ring_path


def ring_of(
    directory: Path, key: str, tier: str, boot: str = "boot1", counted_by: str = "link_downed"
) -> RingWriter:
    return RingWriter(
        ring_path(directory, key, tier),
        key=key,
        counted_by=counted_by,
        tier=tier,
        columns=["counters/link_downed", "state"],
        rows=16,
        boot=boot,
    )


def from_the_start(_key: str) -> Known:
    return Known("link_downed", 0)


def test_samples_of_all_ports_and_tiers_come_in_the_order_in_which_they_began(
    tmp_path: Path,
) -> None:
    fast, slow = ring_of(tmp_path, "a/1", "fast"), ring_of(tmp_path, "a/1", "slow")
    other = ring_of(tmp_path, "b/1", "fast")
    fast.append(10, 11, READ_WITNESS, {"counters/link_downed": 3})
    fast.append(30, 31, READ_WITNESS, {"counters/link_downed": 4})
    slow.append(20, 22, READ_STATE, {"state": 4})
    other.append(25, 26, READ_WITNESS, {})

    assert remembered_samples(tmp_path, "boot1", from_the_start) == [
        Sample("a/1", 10, 11, READ_WITNESS, {"counters/link_downed": 3}),
        Sample("a/1", 20, 22, READ_STATE, {"state": 4}),
        Sample("b/1", 25, 26, READ_WITNESS, {}),
        Sample("a/1", 30, 31, READ_WITNESS, {"counters/link_downed": 4}),
    ]


def test_what_the_checkpoint_has_is_left_out(tmp_path: Path) -> None:
    ring = ring_of(tmp_path, "a/1", "fast")
    for before_ns in (10, 20, 30):
        ring.append(before_ns, before_ns + 5, READ_WITNESS, {})

    samples = remembered_samples(tmp_path, "boot1", {"a/1": Known("link_downed", 25)}.get)

    assert [sample.before_ns for sample in samples] == [30]


def test_another_boot_and_damaged_files_tell_nothing(tmp_path: Path) -> None:
    ring_of(tmp_path, "a/1", "fast", boot="boot0").append(10, 11, READ_WITNESS, {})
    (tmp_path / "broken.ring").write_bytes(b"no ring")

    assert remembered_samples(tmp_path, "boot1", from_the_start) == []


def test_an_unknown_port_or_another_count_tells_nothing(tmp_path: Path) -> None:
    """A netdev that was replaced while the agent was away counts from elsewhere."""
    ring_of(tmp_path, "a/1", "fast", counted_by="other").append(10, 11, READ_WITNESS, {})
    ring_of(tmp_path, "b/1", "fast").append(10, 11, READ_WITNESS, {})

    assert remembered_samples(tmp_path, "boot1", {"a/1": Known("link_downed", 0)}.get) == []
