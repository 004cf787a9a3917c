from pathlib import Path

import msgspec
import pytest

from flapd.model.errors import FlapdError
from flapd.sources.kernel_sources import silent_sources
from flapd.sources.settings import OFF, PathsSettings, SourcesSettings
from tests.trees import lay_out

SOURCES = SourcesSettings.__struct_fields__
ALL_OFF = msgspec.convert(dict.fromkeys(SOURCES, "off"), SourcesSettings)


def test_what_is_off_is_not_even_tried() -> None:
    paths = PathsSettings(sysfs="/nowhere", dev="/nowhere")

    assert silent_sources(ALL_OFF, paths) == dict.fromkeys(SOURCES, OFF)


def test_of_a_simulated_node_the_kernel_tells_nothing(tmp_path: Path) -> None:
    lay_out(tmp_path, {"class/infiniband/mlx5_0/node_guid": "0002:c903:0031:2340\n"})

    silent = silent_sources(SourcesSettings(), PathsSettings(sysfs=str(tmp_path)))

    assert set(silent) == set(SOURCES)
    assert silent["rtnetlink"] == f"paths.sysfs: {tmp_path} is not the running kernel's own"


def test_of_the_running_kernel_rtnetlink_and_ethtool_tell_everywhere() -> None:
    silent = silent_sources(SourcesSettings(), PathsSettings())

    assert not {"rtnetlink", "ethtool"} & set(silent)


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_on_and_cannot_work_is_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path, {"class/infiniband/mlx5_0/node_guid": "0002:c903:0031:2340\n"})
    switches = msgspec.convert(dict.fromkeys(SOURCES, "off") | {name: "on"}, SourcesSettings)

    with pytest.raises(FlapdError, match=f'sources.{name} is "on" and cannot work: .+'):
        silent_sources(switches, PathsSettings(sysfs=str(tmp_path)))
