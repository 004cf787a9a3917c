"""What a flap costs: pure functions from a policy and a duration to GPU-seconds and money."""
