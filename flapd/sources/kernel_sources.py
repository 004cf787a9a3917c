"""Which of the kernel's other voices can be heard besides sysfs, and why not the others."""

from collections.abc import Callable, Mapping
from pathlib import Path

from flapd.model.errors import FlapdError
from flapd.sources.ethtool_netlink import EthtoolNetlink
from flapd.sources.files import reason_of
from flapd.sources.kernel_log import why_no_kernel_log
from flapd.sources.kernel_paths import why_no_netdevs, why_not_kernels
from flapd.sources.rdma_netlink import RdmaNetlink
from flapd.sources.settings import OFF, PathsSettings, SourcesSettings
from flapd.sources.verbs_device import why_no_verbs


def silent_sources(sources: SourcesSettings, paths: PathsSettings) -> dict[str, str]:
    """Those that tell nothing, and why.

    FlapdError where one of them is "on". To be asked by the process that will use them: their
    privileges differ.
    """
    reasons: Mapping[str, Callable[[], str | None]] = {
        "rdma_netlink": lambda: _why_none(RdmaNetlink, Path(paths.sysfs)),
        "rtnetlink": lambda: why_no_netdevs(Path(paths.sysfs)),
        "verbs": lambda: why_no_verbs(Path(paths.sysfs)),
        "ethtool": lambda: _why_none(EthtoolNetlink, Path(paths.sysfs)),
        "kernel_log": lambda: why_no_kernel_log(Path(paths.sysfs), Path(paths.dev)),
    }
    silent = {}
    for name in SourcesSettings.__struct_fields__:
        switch = getattr(sources, name)
        reason = OFF if switch == "off" else reasons[name]()
        if reason is not None:
            silent[name] = reason
            if switch == "on":
                raise FlapdError(f'sources.{name} is "on" and cannot work: {reason}')
    return silent


def _why_none(open_source: Callable[[], RdmaNetlink | EthtoolNetlink], sysfs: Path) -> str | None:
    try:
        open_source().close()
    except OSError as error:
        return f"the kernel does not answer: {reason_of(error)}"
    return why_not_kernels(sysfs)
