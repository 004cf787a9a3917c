"""The words of flapd as frozen types: what is observed, and what is told of it."""
