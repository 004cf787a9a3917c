"""Messages of launchers: torchrun (torch/distributed/elastic), DeepSpeed, Slurm."""

from flapd.core.job.form import form

FORMS = (
    form(
        "worker_failed",
        "process_death",
        "failed (exitcode: ",
        r"failed \(exitcode: (?P<status>-?\d{1,5})\)",
        r"\(pid: (?P<pid>\d{1,10})\)",
    ),
    form(
        "worker_signalled",
        "process_death",
        " closing signal ",
        r"Sending process (?P<pid>\d{1,10}) closing signal (?P<event>SIG[A-Z]{2,8})",
        consequence=True,
    ),
    form(
        "worker_closed",
        "process_death",
        "Closing process ",
        r"Closing process (?P<pid>\d{1,10}) via signal (?P<event>SIG[A-Z]{2,8})",
        consequence=True,
    ),
    form(
        "worker_killed",
        "process_death",
        "forcefully exiting via ",
        r"Unable to shutdown process (?P<pid>\d{1,10}) via .{1,32}?, "
        r"forcefully exiting via (?P<event>[\w.]{1,32})",
        consequence=True,
    ),
    form(
        "worker_group_failed",
        "process_death",
        "Worker group FAILED",
        consequence=True,
    ),
    form("child_failed", "process_death", "ChildFailedError", consequence=True),
    form(
        "signal_received",
        "process_death",
        " received by PID ",
        r"Signal (?P<status>\d{1,3}) \((?P<event>SIG[A-Z]{2,8})\) received by PID "
        r"(?P<pid>\d{1,10})",
        consequence=True,
    ),
    form(
        "deepspeed_kill",
        "process_death",
        "Killing subprocess ",
        r"Killing subprocess (?P<pid>\d{1,10})",
        consequence=True,
    ),
    form(
        "slurm_task_ended",
        "process_death",
        "srun: error: ",
        r"srun: error: (?P<host>[\w.-]{1,64}): tasks? (?P<ranks>[\d,\[\]-]{1,128}): "
        r"(?P<event>Exited with exit code|[A-Z][\w ]{2,40})(?: (?P<status>\d{1,3}))?",
    ),
    form(
        "slurm_node_failed",
        "process_death",
        "Node failure on ",
        r"Node failure on (?P<host>[\w.,\[\]-]{1,128})",
    ),
    form(
        "slurm_cancelled",
        "process_death",
        " CANCELLED AT ",
        r"\*\*\* (?:STEP|JOB) \S{1,40} ON (?P<host>[\w.-]{1,64}) CANCELLED AT (?P<at>[\dT:-]{19})"
        r"(?: (?P<event>DUE TO [A-Z ]{3,40}))?",
    ),
    form(
        "slurm_out_of_memory",
        "process_death",
        "kill event",
        r"Detected \d{1,9} (?P<event>oom[-_]kill) event(?:s|\(s\))? in ",
    ),
    form(
        "slurm_step_ended",
        "process_death",
        "srun: ",
        r"srun: (?P<event>Terminating StepId=\S{1,40}|Job step aborted)",
        consequence=True,
    ),
)
