"""Logs and dumps, followed as they grow."""
