"""PortRecord: what is kept of one port, between samples and over restarts."""

import msgspec

from flapd.core.fabric.book import Book
from flapd.core.fabric.carrier import CarrierBook
from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.core.fabric.quality import Level, Quality
from flapd.core.fabric.reserve import ReserveBook
from flapd.core.fabric.view import Repair, WitnessStatus
from flapd.model.port import Port


class PortRecord(msgspec.Struct):
    """The checkpoint holds just this."""

    port: Port
    book: Book = msgspec.field(default_factory=Book)
    values: dict[str, int] = {}
    carrier: CarrierBook = msgspec.field(default_factory=CarrierBook)
    reserve: ReserveBook = msgspec.field(default_factory=ReserveBook)
    is_told: bool = False
    """That it was found."""
    changes: int = 0
    """Revisions of the port told so far."""
    told_witness: WitnessStatus = "unproven"
    told_flapping: bool = False
    unregistered: bool = False
    """Its device said that it is gone, and nothing of it was read since."""
    quality: Quality = msgspec.field(default_factory=Quality)
    told_level: Level = "good"
    repaired: Repair | None = None
    module: ModuleIdentity | None = None
    """Transceiver or cable that was in it last."""
    gone_unix_ns: int | None = None
    """When discovery last found that it is not there; None while it is."""
