"""What flapd is tried against: never imported by flapd, never in its wheel."""
