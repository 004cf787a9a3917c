"""Ledger: books every second of a job in exactly one place, and finds out what work was lost."""

from simulators.job.truth import Books, Lost


class Ledger:
    """Seconds of one GPU; all GPUs of a synchronous job do the same."""

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus
        self._kept = 0.0
        self._since_checkpoint = 0.0
        self._steps_kept = 0
        self._steps_since = 0
        self._booked = dict.fromkeys(Books.__struct_fields__, 0.0)

    def work(self, seconds: float) -> None:
        """Kept as soon as there is a checkpoint of it."""
        self._since_checkpoint += seconds

    def step_done(self) -> None:
        self._steps_since += 1

    def book(self, account: str, seconds: float) -> None:
        self._booked[account] += seconds

    def saved(self) -> None:
        """A checkpoint is complete: all work until now is safe."""
        self._kept += self._since_checkpoint
        self._steps_kept += self._steps_since
        self._since_checkpoint, self._steps_since = 0.0, 0

    def died(self, lost: Lost) -> Lost:
        """The job goes on from its last checkpoint: the loss with the work that is to be redone."""
        whole = Lost(
            lost.stall, lost.detect, lost.propagation, lost.restart, self._since_checkpoint
        )
        for account in Lost.__struct_fields__:
            self._booked[account] += getattr(whole, account)
        self._since_checkpoint, self._steps_since = 0.0, 0
        return whole

    @property
    def steps(self) -> int:
        return self._steps_kept + self._steps_since

    def books(self) -> Books:
        """As it stands: what was done since the last checkpoint is not lost yet."""
        seconds = self._booked | {"work": self._kept + self._since_checkpoint}
        return Books(**{account: self._gpus * value for account, value in seconds.items()})
