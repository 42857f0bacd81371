"""Notebooks and artifacts as resources: `notebook://path`, `notebook://path#cell`, `artifact://id`.

Clients list and read them, complete their names, and subscribe to notebooks. Prompts bring a
notebook along: they are four things that people often ask agents to do with one.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cellwright.errors import CellwrightError, EngineError
from cellwright.mcp.calls import clean
from cellwright.outputs.sanitize import make_visible
from cellwright.text.view import to_text
from cellwright.tools.fence import FENCE_NOTE
from cellwright.tools.native.reading import ReadParams, read_notebook
from cellwright.tools.tool import ToolCaller
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.server.context import ServerRequestContext

    from cellwright.workspace.workspace import AsyncWorkspace

    Context = ServerRequestContext[Any, Any]


NOTEBOOK, ARTIFACT = "notebook://", "artifact://"
TEXT_VIEW = "text/x-cellwright"
_MOST_LISTED = 1000
_MOST_CHARACTERS = 400_000
_MOST_BYTES = 4 * 2**20
_NOT_FOUND_2025 = -32002
TEMPLATES = [
    types.ResourceTemplate(
        name="notebook",
        title="A notebook as text",
        uri_template="notebook://{+path}",
        description="All cells as editable text, one marker line per cell",
        mime_type=TEXT_VIEW,
    ),
    types.ResourceTemplate(
        name="cell",
        title="One cell with its outputs",
        uri_template="notebook://{+path}#{cell}",
        description="A cell by id or 0-based index: its source and what it said",
        mime_type="text/plain",
    ),
    types.ResourceTemplate(
        name="artifact",
        title="Stored output",
        uri_template="artifact://{id}",
        description="Long output or a picture; ids are in the answers of tools",
    ),
]
_MOST_COMPLETIONS = 100  # what the protocol allows
_MOST_WATCHES = 32  # a watch costs a thread where there is no engine
_GATHER = 0.2
_RETRY = 1.0


def notebook_uri(path: str) -> str:
    """The address of a notebook."""
    return NOTEBOOK + quote(path, safe="/", errors="surrogatepass")


def notebook_path(uri: str) -> tuple[str, str | None]:
    """The path that an address means, and the cell if it names one."""
    rest, mark, cell = uri.removeprefix(NOTEBOOK).partition("#")
    return unquote(rest, errors="surrogatepass"), unquote(cell) if mark else None


async def list_resources(workspace: AsyncWorkspace) -> list[types.Resource]:
    """The notebooks below the root."""
    return [
        types.Resource(
            name=clean(make_visible(row.path)),
            uri=notebook_uri(row.path),
            mime_type=TEXT_VIEW,
            size=row.size,
        )
        for row in (await workspace.list())[:_MOST_LISTED]
    ]


async def read_resource(
    workspace: AsyncWorkspace, uri: str, version: str
) -> list[types.TextResourceContents | types.BlobResourceContents]:
    """What an address names.

    Raises:
        MCPError: it names nothing that may be read.
    """
    try:
        if uri.startswith(ARTIFACT):
            return [await _read_artifact(workspace, uri)]
        if uri.startswith(NOTEBOOK):
            path, cell = notebook_path(uri)
            if cell is not None:
                return [await _read_cell(workspace, uri, path, cell)]
            return [await _read_notebook(workspace, uri, path)]
    except CellwrightError as error:
        raise _not_found(uri, error.message, error.code, version) from None
    except (ValueError, OSError):  # such as a NUL, which no path may hold
        raise _not_found(uri, "No such resource", "INVALID_PATH", version) from None
    raise _not_found(uri, "No such resource", "UNKNOWN_RESOURCE", version)


def _not_found(uri: str, message: str, code: str, version: str) -> MCPError:
    number = types.INVALID_PARAMS if version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND_2025
    return MCPError(number, clean(make_visible(message)), {"uri": clean(uri), "code": code})


async def _read_notebook(
    workspace: AsyncWorkspace, uri: str, path: str
) -> types.TextResourceContents:
    notebook = await workspace.open(path).load()
    text = make_visible(await asyncio.to_thread(to_text, notebook))
    if len(text) > _MOST_CHARACTERS:
        left = len(text) - _MOST_CHARACTERS
        text = f"{text[:_MOST_CHARACTERS]}\nLEFT OUT: {left:,} characters; {uri}#ID reads one cell"
    return types.TextResourceContents(
        uri=uri, mime_type=TEXT_VIEW, text=clean(text), _meta={"revision": notebook.revision}
    )


async def _read_cell(
    workspace: AsyncWorkspace, uri: str, path: str, cell: str
) -> types.TextResourceContents:
    from cellwright.tools.native.reading import ReadParams, read_notebook
    from cellwright.tools.tool import ToolCaller

    wanted = ReadParams(path=path, cells=[cell], outputs=True)
    answer = await read_notebook(ToolCaller(workspace=workspace), wanted)
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=clean(answer.text))


async def _read_artifact(
    workspace: AsyncWorkspace, uri: str
) -> types.TextResourceContents | types.BlobResourceContents:
    name, _, offset = uri.removeprefix(ARTIFACT).partition("#")
    part = await workspace.artifact(name, int(offset or 0), _MOST_BYTES)
    if part.text is None:
        return types.BlobResourceContents(uri=uri, mime_type=part.mime, blob=part.base64 or "")
    text = part.text
    if part.next_offset is not None:
        text += f"\nLEFT OUT: the rest; {ARTIFACT}{name}#{part.next_offset} continues"
    return types.TextResourceContents(uri=uri, mime_type=part.mime, text=clean(make_visible(text)))


async def complete_argument(
    workspace: AsyncWorkspace, params: types.CompleteRequestParams
) -> types.Completion:
    """The values of an argument that begin with what was typed, then those that contain it."""
    name, value = params.argument.name, params.argument.value
    known = (params.context.arguments if params.context else None) or {}
    if name == "path":
        found = [row.path for row in await workspace.list()]
    elif name == "cell":
        found = await _list_cells(workspace, known.get("path", ""))
    else:
        found = []
    typed = value.lower()
    begins = [text for text in found if text.lower().startswith(typed)]
    contains = [text for text in found if typed in text.lower() and text not in begins]
    # A name that would be shown as another is not offered: it could not be used.
    values = [text for text in begins + contains if clean(text) == text and "\n" not in text]
    return types.Completion(
        values=values[:_MOST_COMPLETIONS],
        total=len(values),
        has_more=len(values) > _MOST_COMPLETIONS,
    )


async def _list_cells(workspace: AsyncWorkspace, path: str) -> list[str]:
    if not path:
        return []
    try:
        notebook = await workspace.open(path).load()
    except (CellwrightError, ValueError, OSError):
        return []
    return await asyncio.to_thread(lambda: [cell.handle for cell in notebook.cells])


class Subscriptions:
    """Tells clients when a notebook changes; one watch for each, however many subscribed."""

    def __init__(
        self,
        workspace: Callable[[Context], Awaitable[AsyncWorkspace]],
        again: Callable[[AsyncWorkspace], Awaitable[AsyncWorkspace]],
    ) -> None:
        self._workspace = workspace
        self._again = again
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._subscribers: dict[str, int] = {}
        self._ends: dict[tuple[int, str], Callable[[], None]] = {}

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Send changes for as long as the client reads them."""
        uris = set(params.notifications.resource_subscriptions or ())
        watched = [uri for uri in uris if await self._watch(ctx, uri)]
        try:
            return await self._listen(ctx, params)
        finally:
            for uri in watched:
                self._release(uri)

    async def subscribe(self, ctx: Context, uri: str) -> None:
        """Tell this client about changes of a notebook until it goes away."""
        connection = ctx.session._connection  # noqa: SLF001  # nothing else outlives the request
        key = (id(connection), uri)
        if key in self._ends or not await self._watch(ctx, uri):
            return
        waiting: set[asyncio.Task[None]] = set()

        def tell(event: object) -> None:
            if event == ResourceUpdated(uri):
                task = asyncio.ensure_future(connection.send_resource_updated(uri))
                waiting.add(task)
                task.add_done_callback(waiting.discard)

        unsubscribe = self._bus.subscribe(tell)

        def end() -> None:
            if self._ends.pop(key, None) is not None:
                unsubscribe()
                self._release(uri)

        self._ends[key] = end
        connection.exit_stack.callback(end)

    def unsubscribe(self, ctx: Context, uri: str) -> None:
        """Stop telling this client."""
        end = self._ends.get((id(ctx.session._connection), uri))  # noqa: SLF001
        if end is not None:
            end()

    async def close(self) -> None:
        """End all watches."""
        self._listen.close()
        for watch in self._watches.values():
            watch.cancel()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)

    async def _watch(self, ctx: Context, uri: str) -> bool:
        """Watch a notebook; returns False for anything else, and for one too many."""
        if not uri.startswith(NOTEBOOK) or (
            uri not in self._watches and len(self._watches) >= _MOST_WATCHES
        ):
            return False
        self._subscribers[uri] = self._subscribers.get(uri, 0) + 1
        if uri not in self._watches:
            workspace = await self._workspace(ctx)
            begun = asyncio.Event()
            watch = asyncio.ensure_future(self._follow(workspace, uri, begun))
            self._watches[uri] = watch
            # A change right after the answer to a subscription must not be missed.
            waits = asyncio.ensure_future(begun.wait())
            await asyncio.wait([watch, waits], return_when=asyncio.FIRST_COMPLETED)
            waits.cancel()
        return True

    def _release(self, uri: str) -> None:
        self._subscribers[uri] -= 1
        if not self._subscribers[uri]:
            del self._subscribers[uri]
            watch = self._watches.pop(uri, None)
            if watch is not None:
                watch.cancel()

    async def _follow(self, workspace: AsyncWorkspace, uri: str, begun: asyncio.Event) -> None:
        news = asyncio.Event()

        def note_event(event: dict[str, Any]) -> None:
            begun.set()
            if event.get("event") in ("changed", "outside", "cell", "run_ended"):
                news.set()

        async def publish() -> None:
            while True:
                await news.wait()
                await asyncio.sleep(_GATHER)  # a run tells many things at once
                news.clear()
                await self._bus.publish(ResourceUpdated(uri))

        publishing = asyncio.ensure_future(publish())
        try:
            with contextlib.suppress(CellwrightError, ValueError, OSError):
                while True:
                    try:
                        await workspace.watch(
                            notebook_path(uri)[0], progress=note_event, announce=True
                        )
                    except EngineError:  # it left, or was stopped; the next one has the notebook
                        await asyncio.sleep(_RETRY)
                        workspace = await self._again(workspace)
                        news.set()  # whatever happened meanwhile
        finally:
            publishing.cancel()


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
        "Explain the notebook {path} to someone who has not seen it: what it is for, what data "
        "goes in, what each part does, what comes out, and how far its results can be trusted. "
        "Name cells by id and index. Say which results are stale or were never computed. "
        "Change nothing.",
        {"outputs": True, "max_tokens": 16000},
    ),
    "debug_failing_cell": PromptTemplate(
        "Debug a failing cell",
        "Find out why a cell fails, fix the cause, and prove it",
        "Cells of the notebook {path} fail{place}. Find the cause, which may be in an earlier "
        "cell. Fix it with notebook_edit and run=stale, so that the change and its proof are one "
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
        "outputs differ. Then fix what stands in the way: cells out of order, names that no cell "
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
        answer = await read_notebook(ToolCaller(workspace=workspace), ReadParams(**wanted))
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
