"""Killed at any moment: nothing lost that was acknowledged, nothing twice, nothing damaged.

One child process forks the writers, so that fifty of them need not start Python anew.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

WRITERS = """
    import os, random, signal, sqlite3, sys, time
    from pathlib import Path
    from flapd.store.black_box import Segment, keep_segments, wanted_slots
    from flapd.store.history import open_history
    from flapd.store.history_reader import HistoryReader
    from flapd.store.lifetime import Now, live_on
    from flapd.store.retention import Retention
    from flapd.store.settings import HistorySettings
    from tests.store.outages import outage

    path, rounds = Path(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(7)

    def write_for_ever(told):
        history, aside = open_history(path, 30 * 10**9)
        assert aside is None
        number = int(history.checkpoint().get("number", b"0"))
        reader = sqlite3.connect(path, isolation_level=None)
        while True:
            number += 1
            seconds = 100 * number
            events = [outage(str(number), revision, down=seconds, up=seconds + 1)
                      for revision in (1, 2)]
            history.commit(events, {"number": str(number).encode()})
            os.write(told, b"%d\\n" % number)
            slots = wanted_slots(reader, "boot-1", 10**9, 50)
            found = [Segment(slot, "fast", ("a",), bytes(2000)) for slot in slots]
            history.write(lambda to: keep_segments(to, slots, found))
            history.write(lambda to: live_on(to, Now("boot-1", seconds, seconds)))
            for step in Retention(HistorySettings()).steps(reader):
                history.write(step)

    def killed_writer():
        '''The last commit that was told to be done.'''
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            write_for_ever(tell)
        os.close(tell)
        with os.fdopen(told) as lines:
            last = int(lines.readline())
            time.sleep(chance.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return max([last, *map(int, lines.read().split("\\n")[:-1])])

    for _ in range(rounds):
        told = killed_writer()
        history, aside = open_history(path)
        assert aside is None
        history.check()
        number = int(history.checkpoint()["number"])
        assert number in (told, told + 1), (number, told)
        reader = HistoryReader(path)
        events = [(event.id, event.revision) for _seq, event in reader.events_after(0, 10**6)]
        assert events == [(str(n + 1), r) for n in range(number) for r in (1, 2)]
        kept = history._connection.execute(
            "SELECT count(*), count(DISTINCT key || slot) FROM segments").fetchone()
        (waiting,) = history._connection.execute("SELECT count(*) FROM wanted").fetchone()
        assert kept[0] == kept[1]
        assert kept[0] + waiting == 7 * number, (kept, waiting, number)
        reader.close()
        history.close()
    print("survived", number)
"""


def test_fifty_kills_at_any_moment_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITERS), str(tmp_path / "h.sqlite"), "50"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}

    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("survived")
