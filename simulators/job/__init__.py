"""A simulated training job: ranks that wait for each other, and what becomes of them."""
