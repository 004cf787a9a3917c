"""The table of all messages that are known."""

from flapd.core.job.form import Form
from flapd.core.job.forms import launch, nccl, pauses, steps, torch

FORMS: tuple[Form, ...] = nccl.FORMS + torch.FORMS + launch.FORMS + steps.FORMS + pauses.FORMS
