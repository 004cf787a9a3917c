"""Launcher: what torchrun (torch/distributed/elastic) and srun print of processes that end."""

from collections.abc import Iterator

from simulators.job.ending import Message
from simulators.job.words.speaker import Speaker

_SIGNALS = {-6: "Aborted (core dumped)", -9: "Killed"}


def worker_failed(speaker: Speaker, message: Message, agent_pid: int) -> Iterator[str]:
    code = message.values["code"]
    if message.values["by"] != "torchrun":
        end = _SIGNALS.get(code, f"Exited with exit code {abs(code)}")
        yield f"srun: error: {speaker.host}: task {speaker.local_rank}: {end}"
        return
    yield _elastic(
        speaker,
        message.at,
        "E",
        agent_pid,
        "multiprocessing/api.py:874",
        f"failed (exitcode: {code}) local_rank: {speaker.local_rank} (pid: {speaker.pid}) of "
        "binary: /usr/bin/python3",
    )


def worker_closed(speaker: Speaker, message: Message, agent_pid: int) -> Iterator[str]:
    if speaker.spec.software.launcher != "torchrun":
        yield f"srun: error: {speaker.host}: task {speaker.local_rank}: Terminated"
        return
    yield _elastic(
        speaker,
        message.at,
        "W",
        agent_pid,
        "multiprocessing/api.py:891",
        f"Sending process {speaker.pid} closing signal SIGTERM",
    )


def _elastic(speaker: Speaker, at: float, level: str, agent_pid: int, place: str, text: str) -> str:
    moment = speaker.clock.moment(at)
    stamp = f"{moment:%m%d %H:%M:%S}.{moment.microsecond:06d}"
    return f"{level}{stamp} {agent_pid} torch/distributed/elastic/{place}] {text}"
