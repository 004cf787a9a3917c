"""A /sys with one port, as plain files."""

PORT = "class/infiniband/mlx5_0/ports/1"
TREE = {
    "class/infiniband/mlx5_0/node_guid": "b83f:d203:0012:3450",
    f"{PORT}/link_layer": "InfiniBand",
    f"{PORT}/state": "4: ACTIVE",
    f"{PORT}/phys_state": "5: LinkUp",
    f"{PORT}/rate": "400 Gb/sec (4X NDR)",
    f"{PORT}/counters/link_downed": "7",
}
