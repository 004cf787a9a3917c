"""A log on a file system that hangs, and a link into one, hold up no other log; a real mount."""

from pathlib import Path

import msgspec
import pytest

from flapd.sources.job_reader_link import ReaderHealth, Told
from flapd.sources.settings import JobsSettings, LogsSettings
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import Fault, two_ports
from tests.sources.follow.lines import timeout
from tests.sources.running_reader import job_reader
from tests.sources.test_job_reader import is_followed, orders
from tests.system.harness import SimulatedNode, simulated_fabric

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no hanging mount: {fuse_missing()}"),
]


def test_logs_on_a_server_that_does_not_answer_hold_up_no_other(tmp_path: Path) -> None:
    node = SimulatedNode(tmp_path)
    hang = Fault("*/ports/1/state", "hang", begin_seconds=0.0, end_seconds=15.0)
    spec = msgspec.structs.replace(two_ports(), faults=(hang,))
    with simulated_fabric(node, spec, origin_in_seconds=0.0):
        hanging = node.sysfs / "class/infiniband/mlx5_0/ports/1/state"
        local = tmp_path / "a-link.log"
        local.symlink_to(node.sysfs / "class/infiniband/mlx5_1/ports/1/state")
        good = tmp_path / "good.log"
        good.touch()
        logs = LogsSettings(paths=(str(hanging), str(tmp_path / "*.log")), from_start=True)
        silent = orders(tmp_path, logs=logs, jobs=JobsSettings(discover=False))
        with job_reader(silent) as reader:
            is_followed(reader, good)
            for number in range(3):
                with good.open("a") as file:
                    file.write(timeout(number))
                assert reader.fault().seq == number

            def names_both(told: Told) -> ReaderHealth | None:
                if not isinstance(told, ReaderHealth):
                    return None
                return told if {str(hanging), str(local)} <= told.failures.keys() else None

            health = reader.until(names_both)

    assert "does not answer" in health.failures[str(hanging)]
