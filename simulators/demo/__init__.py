"""The demo: a simulated node of a training job, with the real agent on it."""
