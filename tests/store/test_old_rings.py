from pathlib import Path

from flapd.store.old_rings import GONE_NS, remove_old_rings
from flapd.store.ring import ring_files
from tests.store.rings import BOOT, KEY, fill, ring_of

LATE_NS = 2 * GONE_NS


def test_a_ring_nobody_wrote_for_an_hour_goes_with_its_port(tmp_path: Path) -> None:
    fill(tmp_path, [1])

    remove_old_rings(tmp_path, BOOT, set(), GONE_NS)
    assert len(ring_files(tmp_path)) == 1
    remove_old_rings(tmp_path, BOOT, set(), LATE_NS)
    assert ring_files(tmp_path) == []


def test_the_ring_of_a_port_that_is_there_stays_however_long_it_hangs(tmp_path: Path) -> None:
    fill(tmp_path, [1])

    remove_old_rings(tmp_path, BOOT, {KEY}, LATE_NS)

    assert len(ring_files(tmp_path)) == 1


def test_rings_of_another_boot_go(tmp_path: Path) -> None:
    fill(tmp_path, [1], boot="boot-0")

    remove_old_rings(tmp_path, BOOT, set(), 0)

    assert ring_files(tmp_path) == []


def test_a_ring_that_was_just_made_and_a_file_that_is_none_stay(tmp_path: Path) -> None:
    ring_of(tmp_path).close()
    (tmp_path / "notes.ring").write_text("mine")

    remove_old_rings(tmp_path, BOOT, set(), LATE_NS)

    assert len(ring_files(tmp_path)) == 2
