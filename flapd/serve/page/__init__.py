"""The on-call page: what the API tells, as HTML that works without a script."""
