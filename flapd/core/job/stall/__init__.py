"""Stalls: when a training job's traffic stands still, and why, from byte counts alone."""
