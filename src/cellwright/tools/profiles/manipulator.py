"""The profile `manipulator`: the six methods of the Notebook Manipulator Protocol as tools.

What the protocol's parameters mean, and what it refuses in which words, is said by
`cellwright.protocol`; here is a host for it over the verbs of a workspace.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, create_model

from cellwright.errors import CellwrightError, Conflict, UnknownRevision
from cellwright.outputs.describe import CHARACTERS_PER_TOKEN, describe
from cellwright.outputs.images import PixelBudget
from cellwright.protocol.messages import ErrorCode, ManipulatorRequest, Refusal, refusal_of
from cellwright.protocol.methods import plan_run, read_or_edit, run_plan
from cellwright.tools.errors import drop_shell_hint
from cellwright.tools.fence import make_readable
from cellwright.tools.page import IMAGES, Page
from cellwright.tools.params import (
    DEADLINE,
    InvalidParameters,
    OptionalPath,
    Params,
    parse_json_text,
)
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import quote_name, shorten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.outputs.images import ModelImage
    from cellwright.protocol.methods import CellResult
    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.requests import Effect
    from cellwright.workspace.workspace import AsyncBook

TOKENS = 8000
_LONGEST = 8000
_NEEDED = ("cell_type", "id", "source", "execution_count")


class BookHost:
    """A `NotebookHost` that is a notebook of a workspace."""

    def __init__(self, book: AsyncBook, caller: ToolCaller) -> None:
        self._book = book
        self._caller = caller

    async def snapshot(self) -> Notebook:
        """The notebook as it is now."""
        return await self._book.load()

    async def apply(self, edits: Sequence[Edit], *, base: Snapshot | None = None) -> Notebook:
        """Apply edits, all or nothing."""
        revision = None if base is None else base.revision
        try:
            await self._book.edit(list(edits), base=revision, label="manipulator")
        except UnknownRevision:  # it was changed between our look and our edit
            raise Conflict("The notebook was changed meanwhile") from None
        return await self._book.load()

    async def run(
        self, cells: Sequence[str], *, base: Snapshot | None = None, nested: str | None = None
    ) -> Sequence[CellResult]:
        """Run code cells until one does not end well."""
        del base, nested  # handles are ids; a tool is never called from inside its own cell
        done = await self._book.run(list(cells), detach=DEADLINE, **self._caller.run_options())
        if not done.done:
            message = f"Cell execution is still running after {DEADLINE:g} s, as run {done.run}"
            raise Refusal(ErrorCode.EXECUTION_FAILED, message)
        return [each.to_cell_result() for each in done if each.status != "pending"]


def _make_call(name: str) -> Callable[[ToolCaller, Any], Awaitable[ToolResult]]:
    async def call(caller: ToolCaller, params: Params) -> ToolResult:
        given = params.model_dump(exclude_none=True)
        book = await caller.find_book(given.pop("path", None))
        if book is None:
            return describe_refusal(
                Refusal(ErrorCode.NO_ACTIVE_NOTEBOOK, "No active notebook is available")
            )
        host = BookHost(book, caller)
        request = ManipulatorRequest("", None, name, given)
        try:
            if name == "execute_cell_range":
                result = await run_plan(host, request, await plan_run(host, request))
            else:
                result = await read_or_edit(host, request)
        except Refusal as refusal:
            return describe_refusal(refusal)
        return await asyncio.to_thread(_describe_result, result)  # it may decode pictures

    return call


def _describe_result(result: dict[str, Any]) -> ToolResult:
    shown, pictures, left = shorten_result(result, TOKENS)
    page = Page(TOKENS)
    page.head("ok")
    if shown:
        cut = page.show("result", json.dumps(shown, ensure_ascii=False, indent=1))
        if cut:
            page.leave_out(f"{cut:,} characters; ask for fewer cells")
    if left:
        page.leave_out(left)
    page.pictures += pictures
    return page.to_result({"status": "ok", "result": shown})


def shorten_result(
    result: dict[str, Any], tokens: int
) -> tuple[dict[str, Any], tuple[ModelImage, ...], str]:
    """A result without base64 and within so many tokens, its pictures, and what was left out."""
    cells = result.get("cells")
    if not isinstance(cells, list):
        shown = _shorten_value(result)
        if len(json.dumps(shown, ensure_ascii=False)) > tokens * CHARACTERS_PER_TOKEN:
            names = [name for value in shown.values() if isinstance(value, dict) for name in value]
            return {"names": names[:100]}, (), "the values, which are too long"
        return shown, (), ""
    pictures: list[ModelImage] = []
    pixels = PixelBudget()
    kept: list[Any] = []
    room = tokens * CHARACTERS_PER_TOKEN
    for place, cell in enumerate(cells):
        outputs = cell.get("outputs") or []
        if len(pictures) < IMAGES and any("data" in output for output in outputs):
            found = describe(outputs, 100, images=IMAGES - len(pictures), pixels=pixels)
            pictures += found.images
        shape = _shorten_value(cell)
        size = len(json.dumps(shape, ensure_ascii=False))
        if size > room and kept:
            left = f"{len(cells) - place} cells; ask for the range from {place} of it on"
            return {"cells": kept}, tuple(pictures), left
        if size > room:
            kept.append({name: shape[name] for name in _NEEDED if name in shape})
            return {"cells": kept}, tuple(pictures), "metadata and outputs, which are too long"
        room -= size
        kept.append(shape)
    return {"cells": kept}, tuple(pictures), ""


def _shorten_value(value: Any) -> Any:
    """The value with long texts cut, and without binary data."""
    if isinstance(value, str):
        shown = make_readable(value)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}⟦… {len(shown):,} in all⟧"
    if isinstance(value, list):
        return [_shorten_value(item) for item in value]
    if isinstance(value, dict):
        return {
            make_readable(str(name))[:200]: _describe_binary(name, item)
            if _is_binary(name)
            else _shorten_value(item)
            for name, item in value.items()
        }
    return value


def _is_binary(name: Any) -> bool:
    return isinstance(name, str) and (
        name.startswith(("image/", "audio/", "video/")) or name == "application/pdf"
    )


def _describe_binary(mime: Any, value: Any) -> Any:
    if mime == "image/svg+xml":
        return _shorten_value(value)
    size = len("".join(value) if isinstance(value, list) else str(value))
    return f"⟦{size:,} characters left out⟧"


def describe_refusal(error: CellwrightError | Refusal) -> ToolResult:
    """An error in the words of the protocol."""
    if isinstance(error, CellwrightError):
        error.hint = drop_shell_hint(error.hint) or None
    refusal = refusal_of(error)
    if isinstance(error, InvalidParameters):  # parameters of another type than the schema says
        refusal = Refusal(ErrorCode.INTERNAL_ERROR, error.message)
    facts = {"message": refusal.message, "code": str(refusal.code)}
    message = refusal.message
    if refusal.code == ErrorCode.EXECUTION_FAILED:  # it ends with the name that the kernel gives
        place, colon, name = message.partition(": ")
        message = place + colon + (quote_name(name) if name else "")
    text = f"error: {refusal.code}: {shorten(message, 400)}"
    return ToolResult(text, {"status": "error", "error": facts}, is_error=True)


def _make_params(name: str, **fields: Any) -> type[Params]:
    made: type[Params] = create_model(name, __base__=Params, **fields, path=(OptionalPath, None))
    made.__doc__ = "Parameters of the protocol, and which notebook."
    return made


def _make_field(kind: str | dict[str, Any], description: str) -> Any:
    # The protocol itself says what is wrong with a value, with a code of its own.
    shape: dict[str, Any] = {"type": kind} if isinstance(kind, str) else kind
    return Annotated[
        Any,
        BeforeValidator(parse_json_text),
        Field(description=description, json_schema_extra=shape),
    ]


def _make_tool(
    name: str, description: str, effect: Effect, required: Sequence[str] = (), **fields: Any
) -> Tool:
    words = name.split("_")
    reference = words[0] + "".join(map(str.capitalize, words[1:]))
    model = _make_params("".join(map(str.capitalize, words)) + "Params", **fields)
    if required:
        model.model_config = {
            **model.model_config,
            "json_schema_extra": {"required": list(required)},
        }
        model.model_rebuild(force=True)
    return Tool(
        name=name,
        title=" ".join(words).capitalize(),
        description=description,
        model=model,
        call=_make_call(name),
        effects=effect,
        reference=reference,
        tags=frozenset({"read-only"} if effect == "read" else ()),
        refused=describe_refusal,
    )


# With the fields that a model needs; a program may give all that nbformat has.
_CELLS: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "cell_type": {"type": "string", "enum": ["code", "markdown", "raw"]},
            "source": {"type": "string"},
        },
        "required": ["cell_type", "source"],
    },
}


_START = (_make_field("integer", "First cell, from 0"), None)


_SPAN = {"start": _START, "end": (_make_field("integer", "The cell after the last"), None)}


MANIPULATOR = (
    _make_tool("get_cell_count", "The number of cells of the notebook.", "read"),
    _make_tool("get_notebook_metadata", "The metadata of the notebook.", "read"),
    _make_tool(
        "get_cell_range",
        "The cells from `start` to before `end`.",
        "read",
        ("start", "end"),
        **_SPAN,
    ),
    _make_tool(
        "splice_cell_range",
        "Delete `delete_count` cells from `start` on, and insert `cells` there.",
        "edit",
        ("start",),
        start=_START,
        delete_count=(_make_field("integer", "Default 0"), None),
        cells=(_make_field(_CELLS, "Cells as nbformat has them"), None),
    ),
    _make_tool(
        "set_notebook_metadata",
        "Set `metadata` of the notebook; with `merge` false they replace all there are.",
        "edit",
        ("metadata",),
        metadata=(_make_field("string", "JSON object of fields to set; null removes one"), None),
        merge=(_make_field("boolean", "Default true"), None),
    ),
    _make_tool(
        "execute_cell_range",
        "Run the code cells from `start` to before `end`; the first that fails is the last.",
        "run",
        ("start", "end"),
        **_SPAN,
    ),
)
"""In the order of the protocol."""
