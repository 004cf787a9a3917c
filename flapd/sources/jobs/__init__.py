"""Training jobs, as this node's processes show them."""
