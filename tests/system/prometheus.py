"""Real Prometheus and Alertmanager as processes, and who is told by them."""

import http.client
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from tests.programs import program
from tests.system.harness import until
from tests.system.ports import free_port

SCRAPE_SECONDS = 2
EVALUATE_SECONDS = 1


class Alert(NamedTuple):
    arrived: float
    """Unix time."""
    told: dict[str, Any]


class Webhook:
    """Whom Alertmanager tells."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                arrived = time.time()
                webhook.alerts += [Alert(arrived, told) for told in json.loads(body)["alerts"]]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def told(self, name: str, status: str) -> Alert | None:
        return next(
            (
                alert
                for alert in self.alerts
                if alert.told["labels"]["alertname"] == name and alert.told["status"] == status
            ),
            None,
        )


class Prometheus:
    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"

    def query(self, expr: str) -> list[dict[str, Any]]:
        """An instant vector's samples; fails with Prometheus' own words."""
        _, answer = self._get(f"/api/v1/query?{urlencode({'query': expr})}")
        assert answer["status"] == "success", f"{expr}: {answer.get('error')}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def is_ready(self) -> bool:
        return is_ready(self.address)

    def _get(self, path: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def is_ready(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def alertmanager(directory: Path, webhook: Webhook) -> Iterator[str]:
    """Its address; it tells the webhook of each alert at once."""
    config = {
        "route": {
            "receiver": "test",
            "group_by": ["..."],
            "group_wait": "0s",
            "group_interval": "1s",
            "repeat_interval": "1h",
        },
        "receivers": [
            {
                "name": "test",
                "webhook_configs": [{"url": webhook.url, "send_resolved": True}],
            }
        ],
    }
    file = directory / "alertmanager.yml"
    file.write_bytes(msgspec.json.encode(config))
    address = f"127.0.0.1:{free_port()}"
    options = (
        f"--config.file={file}",
        f"--storage.path={directory}/alertmanager",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    )
    with running("prometheus-alertmanager", options, directory / "alertmanager.log"):
        until(lambda: is_ready(address), "a ready Alertmanager")
        yield address


@contextmanager
def prometheus(directory: Path, rules: str, agent: str, alerts_to: str) -> Iterator[Prometheus]:
    """Scrapes the agent at this address as the job `flapd`."""
    (directory / "rules.yml").write_text(rules)
    config = {
        "global": {
            "scrape_interval": f"{SCRAPE_SECONDS}s",
            "evaluation_interval": f"{EVALUATE_SECONDS}s",
        },
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerts_to]}]}]},
        "scrape_configs": [{"job_name": "flapd", "static_configs": [{"targets": [agent]}]}],
    }
    file = directory / "prometheus.yml"
    file.write_bytes(msgspec.json.encode(config))
    server = Prometheus(free_port())
    options = (
        f"--config.file={file}",
        f"--storage.tsdb.path={directory}/prometheus",
        f"--web.listen-address={server.address}",
    )
    with running("prometheus", options, directory / "prometheus.log"):
        until(server.is_ready, "a ready Prometheus")
        yield server


def _started_by(path: str) -> tuple[str, ...]:
    """What it is started by: Debian's programs read files of theirs in /usr/share, nowhere else.

    One that is only unpacked finds those beside it there, in a name space of its own.
    """
    files = Path(path).parent / "share"
    if not files.is_dir():
        return (path,)
    mounted = f'mount --bind "{files}" /usr/share && exec "$0" "$@"'
    return ("unshare", "--map-root-user", "--mount", "sh", "-c", mounted, path)


@contextmanager
def running(name: str, options: tuple[str, ...], log: Path) -> Iterator[None]:
    command = (*_started_by(program(name)), *options)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)
