"""What may come of telling the fleet."""

from flapd.model.errors import FlapdError


class FleetError(FlapdError):
    """The fleet could not be told; the same may be tried again."""


class TooLargeError(FlapdError):
    """The server takes no message so large: trying again is of no use."""
