"""Torch: what PyTorch prints from an error to the end (ProcessGroupNCCL.cpp by release)."""

from collections.abc import Callable, Iterator, Mapping

from simulators.job.ending import Message
from simulators.job.words.nccl import completion_text
from simulators.job.words.speaker import Speaker

_RETRY_EXCEEDED = 12
_STUCK = (
    "ProcessGroupNCCL's watchdog got stuck for {seconds} seconds without making progress in "
    "monitoring enqueued collectives. This typically indicates a NCCL/CUDA API {example}hang "
    "blocking the watchdog, and could be triggered by another thread holding the GIL inside a "
    "CUDA api, or other deadlock-prone behaviors."
)


def watchdog_timeout(speaker: Speaker, message: Message) -> Iterator[str]:
    release, values = speaker.spec.software.torch_version, message.values
    sizes = "" if release < (2, 1) else "NumelIn=67108864, NumelOut=67108864, "
    work = (
        f"WorkNCCL(SeqNum={values['seq']}, OpType={values['op']}, {sizes}"
        f"Timeout(ms)={round(values['timeout'] * 1000)})"
    )
    yield speaker.torch(
        message.at,
        _line(speaker, 455, 474, 523, 563, 607, 616, 632, 683),
        f"Watchdog caught collective operation timeout: {work} ran for "
        f"{round(values['ran'] * 1000)} milliseconds before timing out.",
    )
    yield from _position(speaker, message)


def nccl_error(speaker: Speaker, message: Message) -> Iterator[str]:
    """The watchdog asks each communicator for its error."""
    found = (
        "found async exception when checking for NCCL errors: "
        if speaker.spec.software.torch_version >= (2, 3)
        else f"Collective {_work(message)} raised the following async exception: "
    )
    yield speaker.torch(message.at, 2300, found + _what(speaker, message))
    yield from _position(speaker, message)


def dump_signal(speaker: Speaker, message: Message) -> Iterator[str]:
    values = message.values
    yield speaker.torch(
        message.at,
        1870,
        "Received a dump signal due to a collective timeout from this local rank and we will try "
        f"our best to dump the debug info. Last enqueued NCCL work: {values['enqueued']}, last "
        f"completed NCCL work: {values['completed']}.This is most likely caused by incorrect usages"
        " of collectives, e.g., wrong sizes used across ranks, the order of collectives is not "
        "same for all ranks or the scheduled collective, for some reason, didn't run.",
    )
    yield speaker.torch(
        message.at, 1557, "ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1"
    )


def dump_observed(speaker: Speaker, message: Message) -> Iterator[str]:
    yield speaker.torch(
        message.at,
        1922,
        "Observed flight recorder dump signal from another rank via TCPStore.",
    )


def dump_written(speaker: Speaker, message: Message) -> Iterator[str]:
    """Printed at the level INFO, which is off by default."""
    del speaker, message
    yield from ()


def watchdog_stuck(speaker: Speaker, message: Message) -> Iterator[str]:
    seconds = round(message.values["seconds"])
    release = speaker.spec.software.torch_version
    if release < (2, 3):
        yield speaker.torch(
            message.at,
            1182,
            "NCCL monitoring thread detects no heartbeat and will finally kill the process!",
        )
        return
    if release < (2, 5):
        yield speaker.torch(
            message.at,
            1414,
            "Heartbeat monitor timed out! Process will be terminated after dumping debug info. "
            "workMetaList_.size()=5",
        )
        return
    example = "(e.g., CudaEventDestroy) "
    yield speaker.torch(message.at, 1224, _STUCK.format(seconds=seconds, example=example))


def heartbeat_kill(speaker: Speaker, message: Message) -> Iterator[str]:
    release = speaker.spec.software.torch_version
    if release < (2, 3):
        return
    if release < (2, 5):
        text = _STUCK.format(seconds=600, example="")
    else:
        text = (
            "Terminating the process after attempting to dump debug info, due to "
            "ProcessGroupNCCL watchdog hang."
        )
    yield speaker.torch(message.at, 1557, text, "F")


def taking_down(speaker: Speaker, message: Message) -> Iterator[str]:
    release = speaker.spec.software.torch_version
    line = _line(speaker, 460, 494, 543, 583, 627, 636, 698, 697)
    yield speaker.torch(
        message.at,
        line,
        "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA "
        "kernels, subsequent GPU operations might run on corrupted/incomplete data.",
    )
    yield speaker.torch(
        message.at,
        line,
        "To avoid data inconsistency, we are taking the entire process down.",
    )
    kind = "c10::DistBackendError" if release >= (2, 1) else "std::runtime_error"
    yield f"terminate called after throwing an instance of '{kind}'"


WORDS: Mapping[str, Callable[[Speaker, Message], Iterator[str]]] = {
    function.__name__: function
    for function in (
        watchdog_timeout,
        nccl_error,
        dump_signal,
        dump_observed,
        dump_written,
        watchdog_stuck,
        heartbeat_kill,
        taking_down,
    )
}


def _position(speaker: Speaker, message: Message) -> Iterator[str]:
    """How far this rank got."""
    release, values = speaker.spec.software.torch_version, message.values
    counts = (values["seq"], values["enqueued"], values["completed"])
    if release >= (2, 6):
        yield speaker.torch(
            message.at,
            2241,
            " failure detected by watchdog at work sequence id: {} PG status: last enqueued work: "
            "{}, last completed work: {}".format(*counts),
        )
    elif release >= (2, 4):
        yield speaker.torch(
            message.at,
            1785,
            "Exception (either an error or timeout) detected by watchdog at work: {}, last "
            "enqueued NCCL work: {}, last completed NCCL work: {}.".format(*counts),
        )
    elif release >= (2, 3):
        yield speaker.torch(
            message.at,
            1515,
            "Timeout at NCCL work: {}, last enqueued NCCL work: {}, last completed NCCL work: "
            "{}.".format(*counts),
        )


def _work(message: Message) -> str:
    return f"WorkNCCL(SeqNum={message.values['seq']}, OpType={message.values['op']})"


def _what(speaker: Speaker, message: Message) -> str:
    software = speaker.spec.software
    if software.nccl_version < (2, 13):
        return (
            f"NCCL error: unhandled system error, NCCL version {software.nccl}\n"
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed "
            "or device error."
        )
    return (
        "NCCL error: remote process exited or there was a network error, "
        f"NCCL version {software.nccl}\n"
        "ncclRemoteError: A call failed possibly due to a network error or a remote process "
        "exiting prematurely.\n"
        f"Last error:\n{completion_text(speaker, _RETRY_EXCEEDED, message.values['peer'])}"
    )


def _line(speaker: Speaker, *lines: int) -> int:
    """Of ProcessGroupNCCL.cpp, in 2.0, 2.1 ... 2.5, 2.6 and 2.7, 2.8 and later."""
    major, minor = speaker.spec.software.torch_version[:2]
    if major < 2:
        return lines[0]
    return lines[min(minor if minor < 7 else minor - 1, 7)]
