"""`python -m cellwright.cli.serving [READY]`: the engine, with a bridge to the tools.

The engine knows nothing of tools, which are built on top of it; here both are put together.
"""

from __future__ import annotations

import sys

from cellwright.engine.__main__ import main
from cellwright.tools.bridge import start_bridge

if __name__ == "__main__":
    sys.exit(main(start_bridge))
