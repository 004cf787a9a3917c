"""Nccl: what NCCL prints (src/transport/net_ib.cc to 2.28, net_ib/*.cc since, src/init.cc)."""

from collections.abc import Iterator

from simulators.job.words.speaker import Speaker

_FLUSHED = 5
_VENDOR = {12: 129, 5: 249}
_STATUS = {12: "RETRY_EXC_ERR", 5: "WR_FLUSH_ERR"}
_FIRST_PORT = 53249


def address(node: int) -> str:
    """Out of band: of the node's management interface, not of a NIC."""
    return f"10.0.{node // 250}.{node % 250 + 1}"


def started(speaker: Speaker) -> Iterator[str]:
    """At the start of a process, in order."""
    spec, software = speaker.spec, speaker.spec.software
    level = software.nccl_debug
    if level and speaker.rank == 0:
        version = f"NCCL version {software.nccl}+cuda12.9"
        yield speaker.nccl_info(version) if level == "INFO" else version
    if level != "INFO":
        return
    layer = "IB" if spec.link_layer == "InfiniBand" else "RoCE"
    cards = " ".join(f"[{n}]mlx5_{n}:1/{layer}" for n in range(spec.ranks_per_node))
    own = address(spec.node_of(speaker.rank))
    yield speaker.nccl_info(f"NET/IB : Using {cards} [RO]; OOB eth0:{own}<0>")
    transport = spec.transport
    if transport.ib_timeout is not None:
        yield speaker.nccl_info(f"NCCL_IB_TIMEOUT set by environment to {transport.ib_timeout}.")
    place = f"cudaDev {speaker.local_rank} nvmlDev {speaker.local_rank} busId 9b000"
    function = "ncclCommInitRank " if software.nccl_version >= (2, 23) else ""
    if software.nccl_version >= (2, 18):
        place += " commId 0xdb3f"
    yield speaker.nccl_info(
        f"{function}comm 0x55d1c0 rank {speaker.rank} nranks {spec.world_size} {place} "
        "- Init COMPLETE"
    )


def port_event(speaker: Speaker, at: float, device: str, *, active: bool) -> str:
    """Each process opens each card, so each prints it."""
    name, number = ("port active", 9) if active else ("port error", 10)
    release = speaker.spec.software.nccl_version
    if release < (2, 20):
        text = f"NET/IB : Got async event : {name}"
    elif release < (2, 23):
        text = f"NET/IB : {device}:1 Got async event : {name}"
    elif release < (2, 28, 7):
        text = f"NET/IB : {device}:1 Got async error event: {name}"
    else:
        text = f"NET/IB : {device}:1 Got non-fatal async event: {name}({number})"
    return speaker.nccl_event(at, text)


def gid_changed(speaker: Speaker, at: float, device: str) -> str | None:
    release = speaker.spec.software.nccl_version
    if release < (2, 23):
        return None
    if release < (2, 28, 3):
        return speaker.nccl_event(at, f"NET/IB : {device}:1 unknown event type (18)")
    return speaker.nccl_event(at, f"NET/IB : {device}:1 GID table changed")


def completion_text(speaker: Speaker, status: int, peer: int) -> str:
    """What PyTorch repeats as the last error; the line has a header before it."""
    spec = speaker.spec
    release, vendor = spec.software.nccl_version, _VENDOR[status]
    source = f"{address(spec.node_of(peer))}<{_FIRST_PORT + peer % 1000}>"
    gids, new_gids = _gids(speaker, peer)
    card = f" hca mlx5_{speaker.local_rank}"
    if release < (2, 18):
        return (
            f"NET/IB : Got completion from peer {source} with error {status}, opcode 0, len 0, "
            f"vendor err {vendor}"
        )
    if release < (2, 20):
        return (
            f"NET/IB : Got completion from peer {source} with error {status}, opcode 0, len 0, "
            f"vendor err {vendor} (Send){gids}"
        )
    old = f"with status={status} opcode=0 len=0 vendor err {vendor} (Send){new_gids}"
    if release < (2, 22):
        return f"NET/IB : Got completion from peer {source} {old}"
    if release < (2, 28, 7):
        return f"NET/IB: Got completion from peer {source} {old}{card}"
    named = f"status=IBV_WC_{_STATUS[status]}({status}) opcode=IBV_WC_RDMA_WRITE(1)"
    request = " reqSize=0" if release < (2, 29) else ""
    kind = " req_type=Send" if release < (2, 29) else " "
    return (
        f"NET/IB: Got completion from peer {source} with {named}{request} vendor_err={vendor}"
        f"{kind}{new_gids}{card}"
    )


def completion(speaker: Speaker, at: float, status: int, peer: int) -> str:
    return speaker.nccl_completion(at, completion_text(speaker, status, peer))


def repeats(speaker: Speaker, at: float, peer: int) -> str | None:
    """2.19 to 2.25 go on after the first error, and what was queued behind it is flushed."""
    if not (2, 19) <= speaker.spec.software.nccl_version < (2, 26):
        return None
    return completion(speaker, at, _FLUSHED, peer)


def peer_closed(speaker: Speaker, at: float, peer: int) -> str:
    source = f"{address(speaker.spec.node_of(peer))}<{_FIRST_PORT + peer % 1000}>"
    return speaker.nccl_socket(at, f"Net : Connection closed by remote peer {source}")


def _gids(speaker: Speaker, peer: int) -> tuple[str, str]:
    """On RoCE alone; later releases have no blank in it."""
    if speaker.spec.link_layer == "InfiniBand":
        return "", ""
    port = speaker.local_rank
    own, other = (f"::ffff:10.{port + 1}.{n // 250}.{n % 250 + 1}" for n in _nodes(speaker, peer))
    return f" localGid {own} remoteGid {other}", f" localGid {own} remoteGids{other}"


def _nodes(speaker: Speaker, peer: int) -> tuple[int, int]:
    return speaker.spec.node_of(speaker.rank), speaker.spec.node_of(peer)
