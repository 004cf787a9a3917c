"""`flapd capture`, and `flapd ports --from` what it made."""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from flapd.cli.config_text import config_text
from flapd.cli.main import main
from flapd.config import load_config
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import view
from tests.trees import lay_out

NODE = {
    "class/infiniband/mlx5_7/node_guid": "0002:c903:0000:0007\n",
    "class/infiniband/mlx5_7/ports/1/state": "4: ACTIVE\n",
    "class/infiniband/mlx5_7/ports/1/phys_state": "5: LinkUp\n",
    "class/infiniband/mlx5_7/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "class/infiniband/mlx5_7/ports/1/link_layer": "InfiniBand\n",
    "class/infiniband/mlx5_7/ports/1/counters/link_downed": "5\n",
}


@pytest.fixture
def node(here: Here) -> Here:
    lay_out(here.directory / "sys", NODE)
    (here.directory / "ring").mkdir()
    (here.directory / "ring/mlx5_7.fast").write_bytes(b"rows")
    with here.config.open("a") as config:
        config.write(f'paths.state = "{here.directory}"\npaths.ring = "{here.directory}/ring"\n')
    return here


def contents(capture: Path) -> dict[str, bytes]:
    """Every file in it, in its order."""
    with tarfile.open(capture) as bundle:
        files = {entry.name: bundle.extractfile(entry) for entry in bundle if entry.isreg()}
        return {name: file.read() for name, file in files.items() if file is not None}


def test_with_an_agent_everything_is_in_it(node: Here, capsys: pytest.CaptureFixture[str]) -> None:
    into = node.directory / "capture.tar.gz"

    with agent_at(node, (recent("f1"),), (view(),)):
        assert node.command("capture", "-o", str(into)) == 0

    captured = contents(into)
    assert json.loads(captured["manifest.json"])["left_out"] == {}
    assert captured["ring/mlx5_7.fast"] == b"rows"
    assert json.loads(captured["agent/status.json"])["node"] == "node17"
    assert json.loads(captured["agent/ports.json"])["items"][0]["port"] == "mlx5_0/1"
    assert b"flapd_link_flaps_total" in captured["agent/metrics.txt"]
    assert f'socket = "{node.directory}/flapd.sock"'.encode() in captured["config.toml"]
    assert json.loads(captured["versions.json"])["libraries"]["msgspec"]
    copy = node.directory / "copy.sqlite"
    copy.write_bytes(captured["history.sqlite"])
    with closing(sqlite3.connect(copy)) as history:
        assert history.execute("SELECT id FROM flaps").fetchall() == [("f1",)]
    assert "left out" not in capsys.readouterr().out


def test_without_an_agent_what_is_missing_is_told(
    node: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    into = node.directory / "capture.tar.gz"

    assert node.command("capture", "-o", str(into), "--json") == 0

    told = json.loads(capsys.readouterr().out)
    assert told["left_out"].keys() == {"agent", "history.sqlite"}
    assert "no agent answers" in told["left_out"]["agent"]
    assert told["files"] == len(NODE)
    assert told["bytes"] == into.stat().st_size
    assert next(iter(contents(into))) == "manifest.json"


def test_ports_of_a_capture_are_listed_like_any_others(
    node: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    into = node.directory / "capture.tar.gz"
    assert node.command("capture", "-o", str(into)) == 0
    capsys.readouterr()

    assert main(["ports", "--from", str(into)]) == 0
    table, note = capsys.readouterr()
    assert main(["ports", "--from", str(into), "--json"]) == 0

    assert "mlx5_7/1" in table
    assert max(map(len, table.splitlines())) <= WIDEST
    assert note.startswith(f"flapd: {into}: node ")
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["counters"]["link_downed"] == 5


def test_a_file_that_is_there_is_kept_unless_it_is_to_be_replaced(
    node: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    into = node.directory / "capture.tar.gz"
    into.write_text("precious")

    assert node.command("capture", "-o", str(into)) == 2
    assert into.read_text() == "precious"
    assert "--force" in capsys.readouterr().err
    assert node.command("capture", "-o", str(into), "--force") == 0
    assert "manifest.json" in contents(into)


def test_a_large_history_is_captured_without_its_black_boxes(
    node: Here, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("flapd.cli.capture_parts.LARGEST_WITH_BLACK_BOXES_BYTES", 0)
    into = node.directory / "capture.tar.gz"

    with agent_at(node, (recent("f1"),)):
        history = node.directory / "history.sqlite"
        with closing(sqlite3.connect(history)) as whole:
            whole.execute("INSERT INTO column_sets VALUES (1, 'x')")
            whole.execute("INSERT INTO segments VALUES (1, 'k', 'b', 1, 'fast', 1, ?)", (bytes(9),))
            whole.commit()
        assert node.command("capture", "-o", str(into), "--json") == 0

    assert "black boxes" in json.loads(capsys.readouterr().out)["left_out"]
    copy = node.directory / "copy.sqlite"
    copy.write_bytes(contents(into)["history.sqlite"])
    with closing(sqlite3.connect(copy)) as less, closing(sqlite3.connect(history)) as whole:
        assert less.execute("SELECT id FROM flaps").fetchall() == [("f1",)]
        assert less.execute("SELECT count(*) FROM segments").fetchone() == (0,)
        version = "PRAGMA user_version"
        assert less.execute(version).fetchone() == whole.execute(version).fetchone()
        assert less.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_capture_is_of_this_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "-o", "x", "--url", "http://node17:19315"]) == 2
    assert "unrecognized arguments: --url" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"no tar"])
def test_what_is_no_capture_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)

    assert main(["ports", "--from", str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_settings_in_a_capture_can_be_read_again_and_hold_no_secret(tmp_path: Path) -> None:
    written = tmp_path / "flapd.toml"
    token = tmp_path / "token"
    token.write_text("s3cr3t")
    written.write_text(
        'node.name = "nats://user:pass@node \\"17\\""\nports.exclude = ["mlx5_9/*", "a"]\n'
        f'sampling.interval = "50ms"\nhttp.token_file = "{token}"\n'
    )
    text = config_text(load_config(written, {}))

    assert "s3cr3t" not in text
    assert "pass" not in text
    assert f'token_file = "{token}"' in text
    again = tmp_path / "again.toml"
    again.write_text(text)
    read = load_config(again, {})
    assert read.node.name == 'nats://node "17"'
    assert read.ports.exclude == ("mlx5_9/*", "a")
    assert str(read.sampling.interval) == "50ms"
