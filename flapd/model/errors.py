"""FlapdError: what a user can do something about, said in one sentence."""


class FlapdError(Exception):
    """A fault to be told in one sentence, never with a stack trace."""


class CouldNotFindOutError(FlapdError):
    """The question was right, but nobody could answer it (no agent, nothing readable)."""
