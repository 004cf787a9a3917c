"""flapd finds flapping fabric links, proves which flap hurt which job, and prices it."""

__version__ = "0.1.0"
