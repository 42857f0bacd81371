"""`python -m cellwright.app.engine [READY]`: the engine, whose kernels may call tools."""

from __future__ import annotations

import sys

import cellwright.app  # noqa: F401  # puts the rooms together
from cellwright.engine.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
