"""Training: what Megatron-LM prints of its steps and pauses (megatron/training)."""

from simulators.job.words.speaker import Speaker

_STEPS = 50_000


def step(speaker: Speaker, at: float, number: int, seconds: float) -> str:
    """By the last rank of the job."""
    moment = speaker.clock.moment(at)
    samples = number * speaker.spec.world_size
    return (
        f" [{moment:%Y-%m-%d %H:%M:%S.%f}] iteration {number:8d}/{_STEPS:8d} | consumed samples: "
        f"{samples:12d} | elapsed time per iteration (ms): {seconds * 1000:.1f} | throughput per "
        "GPU (TFLOP/s/GPU): 400.1 | learning rate: 1.000000E-04 | global batch size:  1024 | lm "
        "loss: 1.234000E+00 | loss scale: 1.0 | grad norm: 0.123 | number of skipped iterations:"
        "   0 | number of nan iterations:   0 |"
    )


def saving(number: int) -> str:
    """By rank 0, before it saves."""
    return f"saving checkpoint at iteration {number:7d} to /checkpoints in torch_dist format"


def validated(number: int) -> str:
    """By the last rank, after it evaluated."""
    return (
        f" validation loss at iteration {number} | lm loss value: 1.240000E+00 | lm loss PPL: "
        "3.455613E+00 |"
    )
