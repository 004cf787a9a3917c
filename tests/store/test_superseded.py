"""What an incident took in is there for a hub that starts again, and found by nothing else."""

from contextlib import closing
from pathlib import Path

from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import IncidentQuery
from tests.store.jobs import incident
from tests.store.outages import unix


def test_what_was_taken_in_is_told_as_it_was_told_last_and_what_is_shown_is_not(
    tmp_path: Path,
) -> None:
    old = incident("old", begin=10, end=20)
    part = incident("part", begin=100, end=120, revision=2)
    whole = incident("whole", begin=90, end=130, supersedes=("part", "old", "never told"))
    path = tmp_path / "history.sqlite"
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        history.commit([old, part, whole], {})

        assert reader.superseded_incidents(0) == [old, part]
        assert reader.superseded_incidents(unix(110)) == [part]
        assert reader.incidents(IncidentQuery()).items == [whole]
