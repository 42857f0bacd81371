"""Prompts: four things that people often ask agents to do with a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from cellwright.errors import CellwrightError
from cellwright.mcp.results import clean
from cellwright.tools.fence import FENCE_NOTE
from cellwright.tools.native.reading import ReadParams, read_notebook
from cellwright.tools.tool import Caller
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cellwright.workspace.workspace import AsyncWorkspace


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt: its text, and what of the notebook goes along."""

    title: str
    about: str
    text: str
    reads: Mapping[str, Any]
    cell: bool = False


_PATH = types.PromptArgument(name="path", description="The notebook", required=True)
_CELL = types.PromptArgument(
    name="cell", description="A cell's id or index; default: the first that failed", required=False
)

PROMPTS = {
    "explain": PromptTemplate(
        "Explain a notebook",
        "What a notebook does, step by step, and what its results say",
        "Explain the notebook {path} to somebody who has not seen it: what it is for, what data "
        "goes in, what each part does, what comes out, and how far its results can be trusted. "
        "Name cells by id and index. Say which results are stale or were never computed. "
        "Change nothing.",
        {"outputs": True, "max_tokens": 16000},
    ),
    "debug_failing_cell": PromptTemplate(
        "Debug a failing cell",
        "Find out why a cell fails, mend the cause, and prove it",
        "Cells of the notebook {path} fail{place}. Find the cause, which may be in an earlier "
        "cell. Mend it with notebook_edit and run=stale, so that the change and its proof are one "
        "call; pass `base` with the revision below. Change as little as possible. Then say what "
        "was wrong, what you changed and what the cells say now. notebook_history undoes it.",
        {"only": "errors", "outputs": True, "max_tokens": 8000},
        cell=True,
    ),
    "make_reproducible": PromptTemplate(
        "Make a notebook reproducible",
        "Make it run from top to bottom in a fresh kernel, with the same results",
        "Make the notebook {path} run from top to bottom in a fresh kernel. First see what holds "
        "now: notebook_run with check=true and restart=true writes nothing and reports which "
        "outputs differ. Then mend what stands in the way: cells out of order, names that no cell "
        "defines, paths that exist on one machine only, missing random seeds, input(). Check "
        "again. Say what still differs, and why.",
        {"max_tokens": 12000},
    ),
    "tidy_for_review": PromptTemplate(
        "Tidy a notebook for review",
        "Make it easy to read for a colleague, without changing what it computes",
        "Prepare the notebook {path} for review without changing any result: imports in one "
        "cell at the top, no dead code, no debugging output, long cells split by thought, a "
        "heading and a sentence before each part, names that explain themselves. Send the edits "
        "as one list with `base`, run what became stale, and make sure that the outputs are the "
        "same as before. Then list what you changed, by cell.",
        {"max_tokens": 16000},
    ),
}


def list_prompts() -> list[types.Prompt]:
    """All prompts, with their arguments."""
    return [
        types.Prompt(
            name=name,
            title=prompt.title,
            description=prompt.about,
            arguments=[_PATH, _CELL] if prompt.cell else [_PATH],
        )
        for name, prompt in PROMPTS.items()
    ]


async def build_prompt(
    workspace: AsyncWorkspace, name: str, arguments: Mapping[str, str] | None
) -> types.GetPromptResult:
    """Fill in a prompt, and add the notebook it is about.

    Raises:
        MCPError: there is no such prompt, or no such notebook.
    """
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise MCPError(
            types.INVALID_PARAMS,
            f"No prompt `{shorten(name)[:80]}`; there are {', '.join(PROMPTS)}",
        )
    given = dict(arguments or {})
    path, cell = given.get("path", ""), given.get("cell") or None
    if not path:
        raise MCPError(types.INVALID_PARAMS, f"The prompt {name} needs `path`")
    wanted: dict[str, Any] = {"path": path, **prompt.reads}
    if prompt.cell and cell is not None:
        wanted = {**wanted, "cells": [cell], "only": None}
    try:
        answer = await read_notebook(Caller(workspace=workspace), ReadParams(**wanted))
    except CellwrightError as error:
        raise MCPError(types.INVALID_PARAMS, shorten(error.message)) from None
    except ValueError:
        raise MCPError(types.INVALID_PARAMS, "No such notebook") from None
    place = f", at {shorten(cell)}" if cell is not None else ""
    text = prompt.text.format(path=shorten(path), place=place)
    parts = [text, f"{FENCE_NOTE}\n\n{answer.text}"]
    return types.GetPromptResult(
        description=prompt.about,
        messages=[
            types.PromptMessage(role="user", content=types.TextContent(text=clean(part)))
            for part in parts
        ],
    )
