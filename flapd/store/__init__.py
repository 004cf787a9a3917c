"""What is kept: the ring of samples, the history of events, recordings of observations."""
