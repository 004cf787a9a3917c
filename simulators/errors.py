"""SimulatorError: what the user of a simulator can do something about."""

from flapd.model.errors import FlapdError


class SimulatorError(FlapdError):
    """A fault of a scenario or of the place it shall run in, told in one sentence."""
