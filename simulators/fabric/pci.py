"""Pci: the files of a PCI function, and where it stands."""

from simulators.fabric.node import File, Leaves, below, fixed, link

_VPD_NAME, _VPD_READ_ONLY, _VPD_END = 0x82, 0x90, 0x78


def pci_path(pci: str) -> str:
    """Behind a bridge on the bus before its own, as slots of servers are."""
    domain, bus = pci[:4], int(pci[5:7], 16) - 1
    root = f"{domain}:{bus:02x}"
    return f"/devices/pci{root}/{root}:00.0/{pci}"


def pci_files(
    pci: str,
    *,
    kernel: str,
    vendor: str,
    product: str,
    infiniband: bool,
    vpd: File | None = None,
    vf_of: str | None = None,
) -> Leaves:
    path = pci_path(pci)
    driver = f"/bus/pci/drivers/{kernel}"
    files: Leaves = {
        "vendor": fixed(vendor),
        "device": fixed(product),
        "class": fixed("0x020700" if infiniband else "0x020000"),
        "numa_node": fixed("0"),
        "driver": link(f"{path}/driver", driver),
        "subsystem": link(f"{path}/subsystem", "/bus/pci"),
    }
    if vpd is not None:
        files["vpd"] = vpd
    if vf_of is not None:
        files["physfn"] = link(f"{path}/physfn", pci_path(vf_of))
    places = (f"{driver}/{pci}", f"/bus/pci/devices/{pci}")
    return {**below(path, files), **{place: link(place, path) for place in places}}


def vital_product_data(name: str, keywords: dict[str, str]) -> File:
    """In the form of the PCI specification: a name, then keywords of two letters."""
    read_only = b"".join(
        key.encode() + bytes([len(value)]) + value.encode() for key, value in keywords.items()
    )
    resources = ((_VPD_NAME, name.encode()), (_VPD_READ_ONLY, read_only))
    large = b"".join(
        bytes([tag]) + len(data).to_bytes(2, "little") + data for tag, data in resources
    )
    content = large + bytes([_VPD_END])
    return File(lambda _: content)
