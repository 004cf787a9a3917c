"""The fleet: what a node tells, over NATS, to those who watch a whole cluster."""
