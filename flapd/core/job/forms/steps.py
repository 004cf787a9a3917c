"""Progress lines of training frameworks: they confirm a stall, and tell a job from its noise."""

from flapd.core.job.form import form

FORMS = (
    form(
        "megatron",
        "step",
        "elapsed time per iteration (ms): ",
        r"iteration\s{1,12}(?P<number>\d{1,12})/.{1,300}?"
        r"elapsed time per iteration \(ms\): (?P<milliseconds>\d{1,12}(?:\.\d{1,9})?)",
    ),
    form(
        "deepspeed_pipeline",
        "step",
        "iter time (s): ",
        r"steps: (?P<number>\d{1,12}) .{0,80}?iter time \(s\): (?P<seconds>\d{1,9}(?:\.\d{1,9})?)",
    ),
    form(
        "deepspeed",
        "step",
        "global_step=",
        r"epoch=\d{1,9}/micro_step=\d{1,12}/global_step=(?P<number>\d{1,12})",
    ),
    form("deepspeed_log", "step", "[Rank 0] step=", r"\[Rank 0\] step=(?P<number>\d{1,12}),"),
    form(
        "deepspeed_timers",
        "step",
        "time (ms) | ",
        r"time \(ms\) \| \w{1,40}: ",
    ),
    form(
        "torchtitan",
        "step",
        "tps: ",
        r"step:\s{1,12}(?P<number>\d{1,12})\s{1,4}loss:.{1,160}?tps:",
    ),
    form(
        "nemo_1",
        "step",
        "train_step_timing in s=",
        r"global_step=(?P<number>\d{1,12}(?:\.\d{1,6}e\+?\d{1,2})?).{0,200}?"
        r"train_step_timing in s=(?P<seconds>\d{1,9}(?:\.\d{1,9})?)",
    ),
    form(
        "nemo_2",
        "step",
        "Training epoch ",
        r"Training epoch \d{1,9}, iteration \d{1,12}/\d{1,12}",
        r"global_step: (?P<number>\d{1,12})",
        r"train_step_timing in s: (?P<seconds>\d{1,9}(?:\.\d{1,9})?)",
    ),
    form(
        "tqdm_slow",
        "step",
        "s/it",
        r"(?P<number>\d{1,12})/\d{1,12} \[[\d:<?, ]{5,60}?(?P<seconds>\d{1,9}(?:\.\d{1,9})?)s/it",
        fallback=True,
    ),
    form(
        "tqdm_quick",
        "step",
        "it/s",
        r"(?P<number>\d{1,12})/\d{1,12} \[[\d:<?, ]{5,60}?"
        r"(?P<per_second>\d{1,9}(?:\.\d{1,9})?)it/s",
        fallback=True,
    ),
    form(
        "lit",
        "step",
        "toks/s/device",
        r"iter (?P<number>\d{1,12}): .{0,80}?time: (?P<milliseconds>\d{1,12}(?:\.\d{1,9})?)ms",
    ),
)
