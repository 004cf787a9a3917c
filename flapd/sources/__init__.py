"""I/O in: one source a file, each ends in observations."""
