"""Every door gets its workspace from the composition root, with the tool bridge and the engine."""

from __future__ import annotations

import ast
from pathlib import Path

import cellwright

PACKAGE = Path(cellwright.__file__).parent
# The rooms that make workspaces, and the bridge, whose workspaces share the kernels of their maker.
MAKERS = ("app", "engine", "workspace", "tools/bridge.py")
BARE = "cellwright.workspace.workspace"


def test_no_door_makes_a_workspace_past_the_composition_root() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith(MAKERS):
            found += [f"{name}:{line}" for line in _find_imports(ast.parse(path.read_text()))]
    assert found == []


def _find_imports(tree: ast.AST) -> list[int]:
    """The lines that import a bare workspace when they run, not for type checkers only."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module == BARE:
            found.append(node.lineno)
        found += _find_imports(node)
    return found
