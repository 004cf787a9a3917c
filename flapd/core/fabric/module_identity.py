"""Module: who made the transceiver or cable, by what its EEPROM says of it.

Layouts: SFF-8024 (identifiers), SFF-8472 (SFP), SFF-8636 (QSFP), CMIS 5 (QSFP-DD, OSFP).
"""

import msgspec

HALF_BYTES = 128
"""Of the first 256 bytes, the lower half is always there, the upper is page 0."""


class ModuleIdentity(msgspec.Struct, frozen=True, array_like=True):
    """Each None where the maker left it blank."""

    vendor: str | None
    part: str | None
    serial: str | None


_OLD_PLACES = (20, 40, 68)
_CMIS_PLACES = (1, 20, 38)
_SFP = 0x03
_PLACES = {
    _SFP: _OLD_PLACES,
    **dict.fromkeys((0x0C, 0x0D, 0x11), _OLD_PLACES),  # QSFP, QSFP+, QSFP28
    **dict.fromkeys((0x18, 0x19, 0x1A, 0x1B, 0x1E, 0x1F), _CMIS_PLACES),
}
"""Where name, part and serial number begin in the half that holds them, by identifier."""
_TEXT_BYTES = 16


def has_identity_above(lower: bytes) -> bool:
    """Whether the upper half says who made it; an SFP says it in the lower."""
    return lower[:1] != bytes([_SFP])


def identity_of(lower: bytes, upper: bytes) -> ModuleIdentity | None:
    """None where it is of a kind that is not known, or not whole."""
    half = upper if has_identity_above(lower) else lower
    places = _PLACES.get(lower[0]) if lower else None
    if places is None or len(half) < HALF_BYTES:
        return None
    return ModuleIdentity(*(_text(half[at : at + _TEXT_BYTES]) for at in places))


def _text(raw: bytes) -> str | None:
    """ASCII, filled up with blanks."""
    text = raw.decode("ascii", "replace").strip(" \0")
    return text if text.isprintable() and text else None
