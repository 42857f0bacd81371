"""Serve over HTTP, to whoever holds the token and to nobody else."""
