"""A cluster: many nodes with jobs on them, what befalls their fabric, and what each node tells."""
