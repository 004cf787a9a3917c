"""A simulated fabric: a file system that looks like the /sys of a node with RDMA ports."""
