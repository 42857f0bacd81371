"""Notebooks whose path is like one that is not there."""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING

from cellwright.errors import CellwrightError

if TYPE_CHECKING:
    from cellwright.workspace.workspace import AsyncWorkspace

_MOST = 3
_PATIENCE = 2.0  # seconds; a hint is not worth more


async def near_paths(workspace: AsyncWorkspace, path: str) -> list[str]:
    """The notebooks that were probably meant, the likeliest first."""
    try:
        async with asyncio.timeout(_PATIENCE):
            rows = await workspace.list()
    except (TimeoutError, CellwrightError):
        return []
    return choose_near(path, [row["path"] for row in rows])


def choose_near(path: str, known: list[str]) -> list[str]:
    """Those of the same name elsewhere, then those of a similar path, then of a similar name."""
    wanted = _plain(path)
    same = [each for each in known if _name(_plain(each)) == _name(wanted)]
    paths = {each.lower(): each for each in known} | {_plain(each): each for each in known}
    close = [
        paths[each]
        for name in (wanted, path.lower())
        for each in difflib.get_close_matches(name, paths, _MOST, 0.7)
    ]
    names: dict[str, list[str]] = {}
    for each in known:
        names.setdefault(_name(_plain(each)), []).append(each)
    for name in difflib.get_close_matches(_name(wanted), names, _MOST, 0.7):
        close += names[name]
    return list(dict.fromkeys(same + close))[:_MOST]


def _plain(path: str) -> str:
    return path.lower().removesuffix(".ipynb")


def _name(path: str) -> str:
    return path.rpartition("/")[2]
