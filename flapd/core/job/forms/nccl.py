"""Messages of NCCL 2.7 to 2.30, of RCCL, which prints the same, and of its network plugins.

NCCL: src/transport/net_ib.cc (to 2.28), src/transport/net_ib/*.cc (2.29 and later),
src/misc/ibvwrap.cc, src/misc/socket.cc, src/init.cc by release. Plugins that are made of
net_ib.cc (HPC-X, IBext, IBP) print the same with another name before the colon.
"""

from flapd.core.job.form import form

EVENTS: dict[str, int] = {
    "CQ error": 0,
    "local work queue catastrophic error": 1,
    "invalid request local work queue error": 2,
    "local access violation work queue error": 3,
    "send queue drained": 5,
    "path migrated": 6,
    "path migration request error": 7,
    "local catastrophic error": 8,
    "port active": 9,
    "port error": 10,
    "LID change": 11,
    "P_Key change": 12,
    "SM change": 13,
    "SRQ catastrophic error": 14,
    "SRQ limit reached": 15,
    "last WQE reached": 16,
    "client reregistration": 17,
    "GID table change": 18,
}
"""ibv_event_type_str (rdma-core, libibverbs/enum_strs.c) and the numbers of verbs.h."""

_NAMES = "|".join(EVENTS)
_EVENT = rf"(?P<event>(?:{_NAMES})\b|[A-Za-z][\w ]{{0,40}})"
_PORT = r"(?:(?P<hca>[\w.+-]{1,64}):(?P<port>\d{1,3}) )?"
_ADDRESS = r"(?P<peer>[^\s<>]{1,128}<\d{1,5}>)"

COMPLETION_FIELDS = (
    rf"from peer {_ADDRESS}",
    r" with (?:error |status=)(?:IBV_WC_\w{1,32}\()?(?P<status>\d{1,9})",
    r"vendor[ _]err[ =](?P<vendor>\d{1,9})",
    r"(?:\(|req_type=)(?P<direction>Send|Recv|Flush)\b",
    r"localGid (?P<local_gid>[0-9A-Fa-f:.]{2,45})",
    r"remoteGids? ?(?P<remote_gid>[0-9A-Fa-f:.]{2,45})",
    r"hca (?P<hca>[\w.+-]{1,64})",
)
_COMPLETION_FAMILIES = (
    ("nccl 2.28+, device-initiated", r"NET/IB\w*/GIN"),
    ("nccl 2.28.7-2.28.9", r"IBV_WC_.*?reqSize="),
    ("nccl 2.29+", r"IBV_WC_"),
    ("nccl 2.22-2.28.3", r"status=.*? hca "),
    ("nccl 2.20-2.21", r"status="),
    ("nccl 2.18-2.19", r"error \d+.*?\((?:Send|Recv|Flush)\)"),
    ("nccl 2.10-2.17", r"from peer .*?error \d"),
    ("nccl <= 2.9", r"with error \d"),
)

FORMS = (
    form(
        "completion",
        "transport_error",
        "Got completion ",
        r"(?:NET/IB[\w/]{0,16}\s?: ?)?Got completion (?:from peer|with)\b",
        *COMPLETION_FIELDS,
        families=_COMPLETION_FAMILIES,
    ),
    form(
        "ofi_completion",
        "transport_error",
        "completed with error. RC: ",
        r"NET/OFI Request \S{1,32} completed with error\. RC: ",
    ),
    form(
        "async_event",
        "port_event",
        "Got async event : ",
        rf"{_PORT}Got async event : {_EVENT}",
        families=(("nccl 2.20-2.22", r"^\S+:\d+ Got"), ("nccl <= 2.19", r"^Got")),
    ),
    form(
        "async_error_event",
        "port_event",
        "Got async error event: ",
        rf"{_PORT}Got async error event: {_EVENT}",
        families=(("nccl 2.23-2.28.3", ""),),
    ),
    form(
        "non_fatal_event",
        "port_event",
        "Got non-fatal async event: ",
        rf"{_PORT}Got non-fatal async event: {_EVENT}",
        r"event: [^()]{0,64}\((?P<status>\d{1,4})\)",
        families=(("nccl 2.28.7+", ""),),
    ),
    form(
        "gid_change",
        "port_event",
        "GID table changed",
        rf"{_PORT}(?P<event>GID table change)d",
        families=(("nccl 2.28.3+", ""),),
    ),
    form(
        "unknown_event",
        "port_event",
        "unknown event type (",
        rf"{_PORT}unknown event type \((?P<status>\d{{1,4}})\)",
        families=(("nccl 2.23-2.27", ""),),
    ),
    form(
        "fatal_event",
        "fatal_event",
        "async fatal event",
        rf"{_PORT}async fatal event(?: on [^:]{{1,64}})?: {_EVENT}",
        families=(("nccl 2.30+", r"qpn=|cqe="), ("nccl 2.23+", "")),
    ),
    form(
        "fatal_error_noticed",
        "nccl_error",
        "encountered a fatal error (detected in ",
        consequence=True,
        families=(("nccl 2.23+", ""),),
    ),
    form(
        "verbs_call",
        "nccl_error",
        "Call to ibv_",
        r"Call to (?P<event>ibv_\w{1,40}) failed",
        r"failed with (?P<status>\d{1,4}) ",
        r"on dev (?P<hca>[\w.+-]{1,64}):(?P<port>\d{1,3})",
        r"local GID (?P<local_gid>[0-9A-Fa-f:.]{2,45})",
        r"remote GID (?P<remote_gid>[0-9A-Fa-f:.]{2,45})",
        families=(("nccl 2.24+", r"on dev "), ("nccl <= 2.23", r"with error ")),
    ),
    form(
        "socket_call",
        "nccl_error",
        "Call to ",
        r"Call to (?P<event>recv|send|connect) (?:from |to )?(?P<peer>\S{1,128}) failed",
        consequence=True,
    ),
    form(
        "peer_closed",
        "nccl_error",
        "Connection closed by ",
        r"Connection closed by (?:remote peer (?P<peer>\S{1,128})|localRank \d{1,6})",
        consequence=True,
    ),
    form(
        "device_failed",
        "nccl_error",
        "marked as failed",
        r"Device \d{1,4} marked as failed",
        families=(("nccl 2.30+", r"Initiating recovery"), ("nccl 2.29.7", "")),
        consequence=True,
    ),
    form(
        "no_failover",
        "nccl_error",
        "The error is fatal (",
        r"The error is fatal \((?P<event>No functional devices left|Fatal error status)",
        families=(("nccl 2.29.7+", ""),),
        consequence=True,
    ),
    form(
        "port_recovery",
        "port_event",
        "ort recovery",
        r"(?P<event>Starting port recovery|Port recovery succeeded)",
        families=(("nccl 2.30+", ""),),
        consequence=True,
    ),
    form(
        "device_marked",
        "port_event",
        "Marking device ",
        r"Marking device \S{1,64} as (?P<event>permanently failed|recovered)",
        families=(("nccl 2.30+", ""),),
        consequence=True,
    ),
    form("nccl_warning", "unknown", "NCCL WARN ", fallback=True),
    form(
        "member",
        "member",
        "Init COMPLETE",
        r"comm 0x\w{1,16} rank (?P<rank>\d{1,9}) nranks (?P<ranks>\d{1,9}) .{1,300}?Init COMPLETE",
        r"cudaDev (?P<cuda>\d{1,4})\b",
        r"nvmlDev (?P<nvml>\d{1,4})\b",
        r"busId (?P<bus>\w{1,16})\b",
        r"commId (?P<communicator>0x\w{1,16})\b",
    ),
    form("network_ib", "network", "NET/IB : Using ", r"NET/IB : Using (?P<hcas>[^;]{1,4096})"),
    form("network_socket", "network", "Using network Socket"),
    form("no_device", "network", "NET/IB : No device found"),
    form(
        "set_by_environment",
        "setting",
        " set by environment to ",
        r"(?P<name>NCCL_\w{1,64}) set by environment to (?P<value>[^\s.]{1,128})",
    ),
    form(
        "nccl_version",
        "setting",
        "NCCL version ",
        r"(?<!, )NCCL version (?P<nccl>\d[\w.+-]{2,40})",
    ),
)
