"""Kernels that tell the truth: transports, sessions and their pool."""
