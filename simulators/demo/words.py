"""Words: what one revision of anything that the agent tells says, for somebody who watches."""

import re
from typing import Any

Item = dict[str, Any]

_REGIMES = {
    "absorbed": "the transport waited it out, and all ranks went on",
    "transport_abort": "the transport gave up, and the job died",
    "watchdog": "the watchdog ended the job",
}


def told_once(text: str) -> str:
    """What of it is news: not a number that a later revision knows better."""
    return re.sub(r"[\d.,:]+", "", text)


def job(item: Item) -> str | None:
    """None until its ports are known."""
    if item["until"] is not None:
        return f"{_clock(item['until'])}  job {item['job']} is gone from {item['node']}"
    timeout = item["policy"]["ib_timeout"]
    if not item["ports"]:
        return None
    return (
        f"{_clock(item['since'])}  {item['node']} sees job {item['job']}: "
        f"{item['world_size']:,} ranks, {len(item['local_ranks'])} of them on its "
        f"{len(item['ports'])} ports; "
        f"NCCL_IB_TIMEOUT={timeout['value']}"
    )


def flap(item: Item) -> str:
    edge = item["up"] or item["down"]
    where = f"{_clock(edge['latest'])}  {_port(item)}"
    if item["status"] == "open":
        return f"{where} is down"
    seconds = item["down_seconds"]
    length = f"down for {seconds['min']:.2f} to {seconds['max']:.2f} s"
    if item["seen"] != "observed":
        return f"{where} went down and came back between two readings, {length}"
    return f"{where} is up again, {length}"


def stall(item: Item) -> str:
    job = f"job {item['job']}"
    if item["end"] is None:
        return (
            f"{_clock(item['begin'])}  {job} stands still: no traffic on {len(item['ports'])} ports"
        )
    return f"{_clock(item['end'])}  {job} stood still for {item['seconds']:.1f} s"


def fault(item: Item) -> str | None:
    """None where it follows from another, or no process said it."""
    if not item["primary"] or item["time"] is None or item["kind"] == "counter":
        return None
    what = item["kind"].replace("_", " ")
    who = "" if item["rank"] is None else f" on rank {item['rank']}"
    card = "" if item["hca"] is None else f" ({item['hca']})"
    return f"{_clock(item['time'])}  {item['node']} tells of an error: {what}{who}{card}"


def incident(item: Item) -> str | None:
    """None while it is not seen yet what became of the job."""
    regime, loss = item["regime"], item["gpu_seconds"]
    if regime is None or loss is None or item["regimes"][regime] < 1 or not item["causes"]:
        return None
    cause, cost = item["causes"][0], item["cost"]
    chance = min(99.9, 100 * cause["probability"])
    return (
        f"              {item['verdict']} by {_port(cause)} ({chance:.1f} %): "
        f"{_REGIMES.get(regime, regime)};\n"
        f"              {loss['likely']:,.0f} GPU-seconds of {item['world_size']:,} GPUs, "
        f"{cost['likely']:,.2f} {cost['currency']}"
    )


def _port(item: Item) -> str:
    return f"{item['node']} {item['port']}"


def _clock(written: str) -> str:
    """To the tenth of a second, UTC."""
    return f"{written[11:21]}"
