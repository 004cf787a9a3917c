"""What a hub shows of all nodes: the same lists as an agent, and the nodes themselves."""
