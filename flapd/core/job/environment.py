"""The part of a process's environment that flapd looks at, and NCCL's own reading of it."""

import re
from collections.abc import Mapping

ALLOWED = frozenset(
    {
        "CROSS_RANK",
        "CROSS_SIZE",
        "CUDA_VISIBLE_DEVICES",
        "DEEPSPEED_TIMEOUT",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "HIP_VISIBLE_DEVICES",
        "HOSTNAME",
        "JOB_COMPLETION_INDEX",
        "KUBERNETES_SERVICE_HOST",
        "LOCAL_RANK",
        "LOCAL_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "MV2_COMM_WORLD_RANK",
        "NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_BLOCKING_WAIT",
        "NCCL_CONF_FILE",
        "NCCL_DEBUG",
        "NCCL_DEBUG_FILE",
        "NCCL_DEBUG_TIMESTAMP_FORMAT",
        "NCCL_ENV_PLUGIN",
        "NCCL_IB_DISABLE",
        "NCCL_IB_HCA",
        "NCCL_IB_MERGE_NICS",
        "NCCL_IB_RESILIENCY_PORT_FAILOVER",
        "NCCL_IB_RESILIENCY_PORT_RECOVERY",
        "NCCL_IB_RETRY_CNT",
        "NCCL_IB_RETURN_ASYNC_EVENTS",
        "NCCL_IB_TIMEOUT",
        "NCCL_NET",
        "NCCL_NET_PLUGIN",
        "NVIDIA_VISIBLE_DEVICES",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "PET_MASTER_ADDR",
        "PET_NNODES",
        "PET_NODE_RANK",
        "PET_NPROC_PER_NODE",
        "PMIX_RANK",
        "PMI_RANK",
        "PMI_SIZE",
        "RANK",
        "ROCR_VISIBLE_DEVICES",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        "SLURM_GPUS_ON_NODE",
        "SLURM_JOB_ID",
        "SLURM_JOB_NUM_NODES",
        "SLURM_LOCALID",
        "SLURM_NODEID",
        "SLURM_NTASKS",
        "SLURM_PROCID",
        "SLURM_STEP_ID",
        "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_USE_AGENT_STORE",
        "TORCH_FR_BUFFER_SIZE",
        "TORCH_FR_DUMP_TEMP_FILE",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_BLOCKING_WAIT",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_ENABLE_MONITORING",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        "TORCH_NCCL_PROPAGATE_ERROR",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
        "WORLD_SIZE",
        "XDG_CACHE_HOME",
    }
)
"""Anything else may be a secret: it is never kept."""

_ENTRY = re.compile(rb"(?:^|\0)([A-Z][A-Z0-9_]{1,64})=([^\0]{0,1024})(?=\0|$)")
_C_INTEGER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_LARGEST = 2**63 - 1


def allowed_of(block: bytes) -> dict[str, str]:
    """What of an environment block (/proc/PID/environ) may be kept."""
    return {
        name.decode(): value.decode("utf-8", "replace")
        for name, value in _ENTRY.findall(block)
        if name.decode() in ALLOWED
    }


def conf_of(text: str) -> dict[str, str]:
    """What a file of NCCL's sets: NAME=value a line; the first setter of a name wins.

    setEnvFile in NCCL's src/misc/param.cc, which calls setenv without overwriting.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#") and name.strip() in ALLOWED:
            found.setdefault(name.strip(), value.strip())
    return found


def c_integer(written: str) -> int | None:
    """As NCCL and PyTorch read numbers (strtoll with base 0); None where there is none."""
    found = _C_INTEGER.match(written[:64])
    if found is None:
        return None
    sign, digits = found.groups()
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    value = int(digits, 8 if is_octal else 0)
    return None if value > _LARGEST else -value if sign == "-" else value


def number(settings: Mapping[str, str], *names: str) -> int | None:
    """Of the first of these names that has one."""
    for name in names:
        value = c_integer(settings.get(name, ""))
        if value is not None:
            return value
    return None
