"""Messages that say why a job is about to move nothing: it saves, or it evaluates.

Megatron-LM (megatron/training), torchtitan (components/checkpoint.py), Transformers' Trainer.
"""

from flapd.core.job.form import form

FORMS = (
    form("megatron_saves", "checkpoint", "saving checkpoint at iteration "),
    form("torchtitan_saves", "checkpoint", "Saving the checkpoint (or staging"),
    form("trainer_saves", "checkpoint", "Saving model checkpoint to "),
    form("megatron_validated", "evaluation", "validation loss at iteration "),
    form("trainer_evaluates", "evaluation", "***** Running Evaluation *****"),
)
