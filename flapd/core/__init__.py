"""Pure: takes time as data, does no I/O, and can be replayed."""
