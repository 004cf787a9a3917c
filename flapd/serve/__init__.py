"""What the agent shows: HTTP on TCP and on the Unix socket, JSON and metrics."""
