"""The profile `manipulator`: the six methods of the Notebook Manipulator Protocol as tools.

What the protocol's parameters mean, and what it refuses in which words, is said by
`cellwright.protocol`; here is a host for it over the verbs of a workspace.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, create_model

from cellwright.errors import CellwrightError, Conflict, UnknownRevision
from cellwright.protocol.access import CellResult, Presence
from cellwright.protocol.messages import ErrorCode, ManipulatorRequest, Refusal, refusal_of
from cellwright.protocol.methods import plan_run, read_or_edit, run_plan
from cellwright.tools.native.editing import DEADLINE
from cellwright.tools.page import Page
from cellwright.tools.params import InvalidParameters, Params
from cellwright.tools.profiles.active import OptionalPath, active_book
from cellwright.tools.profiles.lean import lean
from cellwright.tools.tool import Answer, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cellwright.document.edits import Edit
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.tools.tool import Caller
    from cellwright.workspace.requests import Effect
    from cellwright.workspace.workspace import AsyncBook

TOKENS = 8000


class BookHost:
    """A `NotebookHost` that is a notebook of a workspace."""

    def __init__(self, book: AsyncBook, caller: Caller) -> None:
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
        caller = self._caller
        options: dict[str, Any] = {"ask": caller.ask} if caller.ask is not None else {}
        done = await self._book.run(
            list(cells), progress=caller.progress, detach=DEADLINE, **options
        )
        if not done.done:
            told = f"Cell execution is not over after {DEADLINE:g} s and goes on, as run {done.run}"
            raise Refusal(ErrorCode.EXECUTION_FAILED, told)
        return [
            CellResult(
                each.cell,
                "ok" if each.expected else each.status,  # type: ignore[arg-type]  # pending is left out
                each.error[0] if each.error else "",
                each.count,
            )
            for each in done
            if each.status != "pending"
        ]

    async def save(self) -> None:
        """It is saved."""

    async def presence(self) -> Presence:
        """Where a person is, as far as the caller knows."""
        selected = self._caller.selected
        active = next((cell for cell, how in selected.items() if how == "active"), None)
        return Presence(active, tuple(selected))


def _method(name: str) -> Callable[[Caller, Any], Awaitable[Answer]]:
    async def call(caller: Caller, params: Params) -> Answer:
        given = params.model_dump(exclude_none=True)
        book = active_book(caller, given.pop("path", None))
        if book is None:
            return refused(Refusal(ErrorCode.NO_ACTIVE_NOTEBOOK, "No active notebook is available"))
        host = BookHost(book, caller)
        request = ManipulatorRequest("", None, name, given)
        try:
            if name == "execute_cell_range":
                result = await run_plan(host, request, await plan_run(host, request))
            else:
                result = await read_or_edit(host, request)
        except Refusal as refusal:
            return refused(refusal)
        return _done(result)

    return call


def _done(result: dict[str, Any]) -> Answer:
    shown, pictures, left = lean(result, TOKENS)
    page = Page(TOKENS)
    page.head("ok")
    if shown:
        cut = page.show("result", json.dumps(shown, ensure_ascii=False, indent=1))
        if cut:
            page.leave_out(f"{cut:,} characters; ask for fewer cells")
    if left:
        page.leave_out(left)
    return Answer(page.text(), {"status": "ok", "result": shown}, pictures)


def refused(error: CellwrightError | Refusal) -> Answer:
    """An error in the words of the protocol."""
    refusal = refusal_of(error)
    if isinstance(error, InvalidParameters):  # parameters of another type than the schema says
        refusal = Refusal(ErrorCode.INTERNAL_ERROR, error.message)
    told = {"message": refusal.message, "code": str(refusal.code)}
    text = f"error: {refusal.code}: {refusal.message}"
    return Answer(text, {"status": "error", "error": told}, is_error=True)


def _params(name: str, **fields: Any) -> type[Params]:
    made: type[Params] = create_model(name, __base__=Params, **fields, path=(OptionalPath, None))
    made.__doc__ = "Parameters of the protocol, and which notebook."
    return made


def _field(kind: str, description: str) -> Any:
    # The protocol itself says what is wrong with a value, with a code of its own.
    return Annotated[Any, Field(description=description, json_schema_extra={"type": kind})]


_START = (_field("integer", "First cell, from 0"), None)
_SPAN = {"start": _START, "end": (_field("integer", "The cell after the last"), None)}


def _tool(
    name: str, description: str, effect: Effect, required: Sequence[str] = (), **fields: Any
) -> Tool:
    words = name.split("_")
    reference = words[0] + "".join(map(str.capitalize, words[1:]))
    model = _params("".join(map(str.capitalize, words)) + "Params", **fields)
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
        call=_method(name),
        effects=effect,
        reference=reference,
        tags=frozenset({"read-only"} if effect == "read" else ()),
        refused=refused,
    )


MANIPULATOR = (
    _tool("get_cell_count", "The number of cells of the notebook.", "read"),
    _tool("get_notebook_metadata", "The metadata of the notebook.", "read"),
    _tool(
        "get_cell_range",
        "The cells from `start` to before `end`.",
        "read",
        ("start", "end"),
        **_SPAN,
    ),
    _tool(
        "splice_cell_range",
        "Delete `delete_count` cells from `start` on, and insert `cells` there.",
        "edit",
        ("start",),
        start=_START,
        delete_count=(_field("integer", "Default 0"), None),
        cells=(_field("array", "Cells as nbformat has them"), None),
    ),
    _tool(
        "set_notebook_metadata",
        "Set `metadata` of the notebook; with `merge` false they replace all there are.",
        "edit",
        ("metadata",),
        metadata=(_field("object", "Fields to set; null removes one"), None),
        merge=(_field("boolean", "Default true"), None),
    ),
    _tool(
        "execute_cell_range",
        "Run the code cells from `start` to before `end`; the first that fails is the last.",
        "run",
        ("start", "end"),
        **_SPAN,
    ),
)
"""In the order of the protocol."""
