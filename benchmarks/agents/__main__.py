"""`python -m benchmarks.agents`."""

from __future__ import annotations

from benchmarks.agents.evaluation import main

if __name__ == "__main__":
    raise SystemExit(main())
