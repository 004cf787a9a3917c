"""Names: the id of an outage, the same however often it is worked out."""

from hashlib import blake2b

import msgspec


class Names(msgspec.Struct):
    """Which values of the witness have named an outage: none names two."""

    up_to: int = -1

    def name(
        self, port: str, witness: str | None, first_value: int | None, count: int, at_ns: int
    ) -> str:
        """Of an outage whose first down the witness counts as `first_value`, or else at `at_ns`.

        The same after a restart, on a hub, and with the history lost.
        """
        mark = f"at {at_ns}"
        if first_value is not None and first_value > self.up_to:
            mark = f"{witness} {first_value}"
            self.up_to = first_value + count - 1
        return "flap-" + blake2b(f"{port}|{mark}".encode(), digest_size=8).hexdigest()
