"""What is applied to a cluster: by the published schemas, with no more rights than it says."""

import copy
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import msgspec
import pytest

from flapd import __version__
from flapd.config import load_config

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
RELEASES = ("1.31", "1.34", "1.37")


def objects() -> list[dict[str, Any]]:
    texts = (KUBERNETES / "flapd.yaml").read_text().split("\n---\n")
    return [msgspec.yaml.decode(text.encode()) for text in texts]


def the(kind: str) -> dict[str, Any]:
    (found,) = (item for item in objects() if item["kind"] == kind)
    return found


def with_jobs() -> dict[str, Any]:
    """The DaemonSet with jobs.patch.yaml, all of whose operations add (RFC 6902)."""
    daemon_set = copy.deepcopy(the("DaemonSet"))
    for change in msgspec.yaml.decode((KUBERNETES / "jobs.patch.yaml").read_bytes()):
        assert change["op"] == "add"
        *way, last = change["path"].strip("/").split("/")
        place: Any = daemon_set
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            assert last == "-"
            place.append(change["value"])
        else:
            assert last not in place
            place[last] = change["value"]
    return daemon_set


def pod(daemon_set: dict[str, Any]) -> dict[str, Any]:
    return dict(daemon_set["spec"]["template"]["spec"])


def container(daemon_set: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod(daemon_set)["containers"]
    return dict(only)


BOTH = [
    pytest.param(the("DaemonSet"), id="fabric alone"),
    pytest.param(with_jobs(), id="with jobs"),
]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("item", [*objects(), with_jobs()], ids=lambda item: str(item["kind"]))
def test_the_published_schema_takes_it(item: dict[str, Any], release: str) -> None:
    kubernetes_validate.validate(item, release, strict=True)


def test_the_schema_would_find_a_misspelt_key() -> None:
    wrong = the("DaemonSet")
    wrong["spec"]["template"]["spec"]["hostNetwrok"] = True

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, RELEASES[-1], strict=True)


@pytest.mark.parametrize("daemon_set", BOTH)
def test_only_what_asks_whether_the_agent_lives_can_end_it(daemon_set: dict[str, Any]) -> None:
    agent = container(daemon_set)

    for probe in ("startupProbe", "livenessProbe"):
        assert agent[probe]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert agent["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize(
    ("daemon_set", "capabilities", "sees_processes"),
    [(the("DaemonSet"), None, False), (with_jobs(), ["SYS_PTRACE", "DAC_READ_SEARCH"], True)],
    ids=["fabric alone", "with jobs"],
)
def test_it_may_no_more_than_it_says(
    daemon_set: dict[str, Any], capabilities: list[str] | None, sees_processes: bool
) -> None:
    security = container(daemon_set)["securityContext"]

    assert security["capabilities"].get("add") == capabilities
    assert security["capabilities"]["drop"] == ["ALL"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert "privileged" not in security
    assert pod(daemon_set).get("hostPID", False) is sees_processes
    assert not pod(daemon_set)["automountServiceAccountToken"]


def test_jobs_bring_the_capabilities_that_their_drop_in_of_the_unit_gives() -> None:
    drop_in = (ROOT / "systemd/drop-ins/jobs.conf").read_text()
    (given,) = re.findall(r"^AmbientCapabilities=(.+)$", drop_in, re.MULTILINE)

    added = container(with_jobs())["securityContext"]["capabilities"]["add"]
    assert sorted(f"CAP_{name}" for name in added) == sorted(given.split())


@pytest.mark.parametrize("daemon_set", BOTH)
def test_every_mount_has_its_volume_and_the_other_way_round(daemon_set: dict[str, Any]) -> None:
    mounted = [mount["name"] for mount in container(daemon_set)["volumeMounts"]]

    assert sorted(mounted) == sorted(volume["name"] for volume in pod(daemon_set)["volumes"])


def test_history_and_ring_outlive_the_pod() -> None:
    host = {
        v["name"]: v["hostPath"]["path"]
        for v in pod(the("DaemonSet"))["volumes"]
        if "hostPath" in v
    }
    mounts = {m["mountPath"]: m["name"] for m in container(the("DaemonSet"))["volumeMounts"]}

    assert {path: host[mounts[path]] for path in ("/var/lib/flapd", "/run/flapd")} == {
        "/var/lib/flapd": "/var/lib/flapd",
        "/run/flapd": "/run/flapd",
    }


def test_flapd_takes_its_configuration_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "flapd.toml"
    file.write_text(the("ConfigMap")["data"]["flapd.toml"])
    environment = {variable["name"]: "node17" for variable in container(the("DaemonSet"))["env"]}

    assert load_config(file, environment).node.name == "node17"


def test_the_memory_it_may_take_is_that_of_the_unit() -> None:
    unit = (ROOT / "systemd/flapd.service").read_text()

    assert "MemoryMax=768M\n" in unit
    assert container(the("DaemonSet"))["resources"]["limits"] == {"memory": "768Mi"}


def test_the_monitor_finds_the_pods_and_their_port() -> None:
    monitor = msgspec.yaml.decode((KUBERNETES / "podmonitor.example.yaml").read_bytes())
    template = the("DaemonSet")["spec"]["template"]

    assert monitor["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    ports = {port["name"] for port in container(the("DaemonSet"))["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_its_series_are_of_the_job_that_the_rules_ask_for() -> None:
    monitor = msgspec.yaml.decode((KUBERNETES / "podmonitor.example.yaml").read_bytes())
    job = the("DaemonSet")["spec"]["template"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]

    assert f'up{{job="{job}"}}' in (ROOT / "deploy/prometheus/flapd.rules.yml").read_text()


def test_kustomize_names_files_that_are_here_and_this_version() -> None:
    text = (KUBERNETES / "kustomization.yaml").read_text()
    named = re.findall(r"- (?:path: )?(\S+\.yaml)", text)

    assert "flapd.yaml" in named
    assert [name for name in named if not (KUBERNETES / name).is_file()] == []
    (image,) = msgspec.yaml.decode(text.encode())["images"]
    assert image["newTag"] == __version__
    assert f"{image['name']}:{__version__}" == container(the("DaemonSet"))["image"]
