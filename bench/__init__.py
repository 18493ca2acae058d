"""Measurements, the demonstration and the snapshot of early answers; run as `python -m bench…` by make."""
