"""Names: how devices, netdevs, GUIDs and PCI functions are written."""

from typing import Annotated

import msgspec

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,63}$")]
Guid = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}(:[0-9a-f]{4}){3}$")]
Pci = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
