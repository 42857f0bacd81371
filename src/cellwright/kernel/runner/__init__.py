"""The Runner: cells in a plain Python subprocess, without IPython, over lines of JSON."""

from cellwright.kernel.runner.transport import Runner

__all__ = ["Runner"]
