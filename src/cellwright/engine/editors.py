"""The notebooks that editors have open: where a person is in them, and what is not accepted yet."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial

from cellwright.document._bytes.slots import hash_cell
from cellwright.document.notebook import Notebook
from cellwright.engine.live import Editor, LiveHost, asking_page
from cellwright.engine.outside import OutsideChanges, find_saved
from cellwright.engine.person_runs import PersonRuns
from cellwright.errors import CellwrightError, InvalidCall
from cellwright.journal.executions import ExecutionRecord
from cellwright.kernel.events import CommMessage
from cellwright.protocol.bridge import CommBridge
from cellwright.workspace.hosts.file import FileHost
from cellwright.workspace.hosts.host import KernelAddress, Presence
from cellwright.workspace.runs.notebook_access import KernelAccess
from cellwright.workspace.runs.run import Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal

    from cellwright.engine.connection import Connection
    from cellwright.protocol.messages import Reply
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.hub import Hub

    Event = dict[str, Any]


log = logging.getLogger("cellwright.engine")

_LOOK_EVERY = 0.5
_STATES_TRIED = 20
_KERNEL_ACTIONS = ("lend", "interrupt", "restart", "shutdown")
_RUN_STATUSES = ("pending", "running", "ok", "error", "cancelled", "died")


class Editors:
    """Registers the pages of editors, and makes their notebooks live there; for the event loop.

    The calls are those of `docs/live.md`.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._hosts: dict[str, LiveHost] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._comms: dict[str, PageComms] = {}
        self._runs = PersonRuns(hub)
        self._reviews = OpenReviews(hub)
        self._turns = Turns()  # a page that comes must not meet one that is half gone

    async def handle(
        self, client: Connection, caller: Caller, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Answer a call of an editor."""
        if method == "editor.kernels":
            return self._list_kernels(caller)
        path = params.get("path")
        if not isinstance(path, str) or not path:
            raise InvalidCall(f"`{method}` needs a `path`")
        if method == "editor.register":
            async with self._turns.take(caller.open(path).real):
                return await self._register(client, caller, path, params)
        if method == "editor.presence":
            return await self._note_presence(client, caller, path, params)
        if method == "editor.gone":
            real, new = caller.open(path).real, params.get("renamed")
            if isinstance(new, str) and new:
                self._runs.move(client, caller, real, new)
                self._reviews.move(real, caller.open(new).real)
            await self._remove(real, client)
            return {}
        if method == "editor.executed":
            return await self._note_run(client, caller, path, params)
        if method == "editor.manipulate":
            return self._manipulate(client, caller, path, params)
        if method == "editor.accept":
            return self._accept(caller, path, params)
        if method == "editor.before":
            return await self._find_before(caller, path, params)
        if method == "editor.kernel":
            return await self._act_on_kernel(caller, path, params.get("action"))
        raise InvalidCall(f"there is no `{method}`")

    async def forget(self, client: Connection) -> None:
        """Forget an editor whose connection is gone."""
        for real in list(self._hosts):
            await self._remove(real, client)

    async def _register(
        self, client: Connection, caller: Caller, path: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        caller.require("edit", "hold a notebook open")
        book = caller.open(path)
        real = book.real
        await self._hub.in_file_thread(self._hub.leases.own, real)
        file = FileHost(
            book.path,
            real,
            root=caller.root,
            name=book.name,
            settings=caller.settings,
            leases=self._hub.leases,
            recent=self._hub.recent,
        )
        host = self._hosts.get(real) or LiveHost(file)
        editor = Editor(client, path, asyncio.get_running_loop())
        editor.presence, editor.kernel = _read_presence(params), _read_kernel(params)
        recall = partial(self._recall, real)
        self._reviews.begin(real)
        changes = await self._hub.in_file_thread(self._reviews.list, real)
        editor.outside = await self._hub.in_file_thread(OutsideChanges, host, editor, recall)
        # Nothing is awaited from here on: another page may come or go at any time.
        host = self._hosts.setdefault(real, host)
        for old in host.editors:
            if old.connection is client:
                self._runs.leave(old, real)  # the page says again which of its runs it shows
        host.add(editor)
        if real not in self._watching:
            self._watching[real] = asyncio.ensure_future(self._watch_file(host))
        self._hub.add_host(real, host)
        log.info("%s has %s open", client.name, real)
        self._runs.attend(editor)
        self._keep_kernel(real, editor)
        self._hub.events.publish(real, "opened", actor=caller.actor)
        running = self._hub.list_active_cells(real) or {}
        return {"notebook": real, "actor": caller.actor, "running": running, "changes": changes}

    def _recall(self, real: str, digest: str) -> Notebook | None:
        """Find what a file held by the hash of its bytes, among its last states on record."""
        journal = self._hub.journal
        with contextlib.suppress(CellwrightError):
            sides: tuple[Literal["after", "before"], ...] = ("after", "before")
            entries = journal.log(real, limit=_STATES_TRIED)
            states = (journal.state(real, each.id, side) for each in entries for side in sides)
            return find_saved(states, digest)
        return None

    async def _note_presence(
        self, client: Connection, caller: Caller, path: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        real = caller.open(path).real
        host = self._hosts.get(real)
        if host is not None and params.get("saved") is True:
            saver = next((each for each in host.editors if each.connection is client), None)
            if saver is not None and saver.outside is not None:
                saver.outside.note_saved(params.get("news"))
            await self._hub.in_file_thread(host.merge_outside)
        for editor in host.editors if host is not None else ():
            if editor.connection is client:
                before, editor.presence = editor.presence, _read_presence(params)
                if "kernel" in params:
                    editor.kernel = _read_kernel(params, editor.kernel)
                    self._runs.attend(editor)
                    self._keep_kernel(real, editor)
                if editor.presence.focused and editor.presence != before:
                    editor.focused = time.monotonic()
        return {}

    async def _note_run(
        self, client: Connection, caller: Caller, path: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Note that the person runs a cell; once it is over, it is on record."""
        real, ran = caller.open(path).real, _read_run(params)
        host = self._hosts.get(real)
        editor = next((e for e in host.editors if e.connection is client), None) if host else None
        if host is None or editor is None:
            raise InvalidCall(f"{path} is not open here")
        editor.running.pop(ran.cell, None)
        request = params.get("request")
        if ran.status in ("pending", "running"):
            editor.running[ran.cell] = ran.status
            if isinstance(request, str) and request:
                self._runs.claim(editor, caller, request, ran)
            if ran.status == "pending" and self._hub.has_runs:
                self._hub.runs.give_up(real, ran.cell)
        if ran.kernel and editor.kernel is not None:
            editor.kernel = editor.kernel.replace(life=ran.kernel)
        if ran.status not in ("pending", "running"):
            self._runs.forget(editor, ran.cell)
        if ran.kernel and ran.status not in ("pending", "running"):
            ran = replace(ran, actor=caller.actor)
            await self._hub.in_file_thread(self._record, host, real, ran)
        facts = {"handle": ran.cell, "status": ran.status, "actor": caller.actor}
        self._hub.events.publish(real, "executed", **facts)
        return {}

    def _record(self, host: LiveHost, real: str, ran: ExecutionRecord) -> None:
        cells = host.read().cells
        index = next((cell.index for cell in cells if cell.handle == ran.cell), -1)
        self._hub.actors.note(real, ran.actor, "run")
        self._hub.journal.record_execution(real, replace(ran, index=index))

    def _manipulate(
        self, client: Connection, caller: Caller, path: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Take what a kernel says on a comm; nothing is awaited, so that the order stays."""
        real = caller.open(path).real
        host = self._hosts.get(real)
        if host is None:
            raise InvalidCall(f"{path} is not open here")
        for editor in host.editors:
            if editor.connection is client and params.get("kind") == "msg":
                editor.focused = time.monotonic()  # the person runs a cell there
        comms = self._comms.setdefault(real, PageComms())
        return {"taken": comms.take(client, caller, path, _read_comm(params), params.get("cell"))}

    def _accept(self, caller: Caller, path: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Note that the person accepts what some changes did to some cells."""
        real, changes, cells = caller.open(path).real, params.get("changes"), params.get("cells")
        if not isinstance(changes, list) or not isinstance(cells, list):
            raise InvalidCall("`changes` and `cells` are lists of ids")
        self._reviews.accept(real, changes, cells)
        facts = {"changes": changes, "cells": cells, "actor": caller.actor}
        self._hub.events.publish(real, "accepted", **facts)
        return {}

    async def _find_before(
        self, caller: Caller, path: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Find what a cell was before a change, for a person who wants to see the difference."""
        cell, change = params.get("cell"), params.get("change")
        if not isinstance(cell, str) or not isinstance(change, str):
            raise InvalidCall("`cell` and `change` are ids")
        real = caller.open(path).real
        find = self._reviews.find_before
        return {"source": await self._hub.in_file_thread(find, real, change, cell)}

    def _list_kernels(self, caller: Caller) -> dict[str, Any]:
        """List the kernels that notebooks of the caller have here, and lend them."""
        caller.require("run", "use kernels")
        found: dict[str, Any] = {}
        for session in self._hub.sessions.pool if self._hub.has_kernels else ():
            if session.kind == "notebook" and caller.knows(session.key.origin):
                lent = self._hub.sessions.lend(session)
                if lent is not None:
                    found[session.key.session] = lent.to_json()
        return {"kernels": found}

    async def _act_on_kernel(self, caller: Caller, path: str, action: object) -> dict[str, Any]:
        """Lend the kernel that a notebook has here, or do to it what a person asks for."""
        if action not in _KERNEL_ACTIONS:
            raise InvalidCall(f"`action` is one of {', '.join(_KERNEL_ACTIONS)}")
        caller.require("run", "use a kernel")
        session = self._hub.find_session(caller.open(path).real)
        if session is None:
            return {"kernel": None}
        sessions = self._hub.sessions
        if action == "interrupt" and session.transport is not None:
            await session.transport.interrupt()  # the cell of any client
        elif action == "restart":
            await session.restart()
        elif action == "shutdown":
            await sessions.pool.end(session.key)
            sessions.disconnect(session.key)
        lent = sessions.lend(session)
        return {"kernel": None if lent is None else lent.to_json()}

    def _keep_kernel(self, real: str, editor: Editor) -> None:
        """Keep a kernel of ours as long as an editor uses it that has the notebook open."""
        session = self._hub.find_session(real)
        lent = None if session is None else self._hub.sessions.lend(session)
        if session and lent and editor.kernel and editor.kernel.kernel_id == lent.id:
            session.owners.add(editor.connection.name)

    async def _remove(self, real: str, client: Connection) -> None:
        async with self._turns.take(real):
            host = self._hosts.get(real)
            if host is None:
                return
            gone = [each for each in host.editors if each.connection is client]
            host.editors = [each for each in host.editors if each.connection is not client]
            if not host.editors:
                del self._hosts[real]
                self._watching.pop(real).cancel()
                self._hub.remove_host(real)
            for editor in gone:
                self._runs.leave(editor, real)
            if host.editors:
                return
            comms = self._comms.pop(real, None)
            if comms is not None:
                await comms.bridge.close()
            is_busy = self._hub.has_runs and self._hub.runs.is_busy(real)
            if self._hub.find_session(real) is None and not is_busy:
                await self._hub.in_file_thread(self._hub.leases.release, real)
        log.info("%s is not open any more", real)
        self._hub.events.publish(real, "closed")

    async def _watch_file(self, host: LiveHost) -> None:
        """Merge what other programs write to the file, until the notebook is closed."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await self._hub.in_file_thread(host.merge_outside)
            except CellwrightError as error:
                log.info("%s: %s", host.file.path, error)


class PageComms:
    """What the kernel of an open notebook asks of it, through the page whose cell it runs.

    The notebook is read and changed as every other: through its host, on record. The answer goes
    back through the page that asked last.
    """

    def __init__(self) -> None:
        self.bridge = CommBridge(self._find_notebook, self._send, waits=False)
        self._page: tuple[Connection, Caller, str] | None = None

    def take(
        self, client: Connection, caller: Caller, path: str, message: CommMessage, cell: object
    ) -> bool:
        """Take a message, and return whether it belongs to the protocol.

        All pages say that a comm was opened; only the one whose cell asks passes a request on.
        """
        if message.kind == "msg" or self._page is None:
            self._page = (client, caller, path)
        return self.bridge.feed(message, caller=cell if isinstance(cell, str) else None)

    def _find_notebook(self) -> KernelAccess | None:
        if self._page is None:
            return None
        client, caller, path = self._page
        asking_page.set(client)  # for the task that carries the request out, and no other
        return KernelAccess(caller.open(path))

    async def _send(self, answer: Reply) -> None:
        if self._page is not None:
            client, _, path = self._page
            facts = {"comm": answer.comm_id, "data": dict(answer.data), "channel": answer.channel}
            await client.call("editor.reply", {"path": path, **facts})


def _read_comm(params: Mapping[str, Any]) -> CommMessage:
    """Read a message of a kernel.

    Raises:
        InvalidCall: it has the wrong shape.
    """
    kind, comm, data = params.get("kind"), params.get("comm"), params.get("data")
    if kind not in ("open", "msg", "close") or not (
        isinstance(comm, str) and isinstance(data, dict)
    ):
        raise InvalidCall("`kind` is open, msg or close, `comm` an id, `data` an object")
    return CommMessage(kind, comm, str(params.get("target") or ""), data)


def _read_run(params: Mapping[str, Any]) -> ExecutionRecord:
    """Read what an editor says of a cell that the person runs; its place is not known yet.

    Raises:
        InvalidCall: it has the wrong shape.
    """
    cell, status, source = params.get("cell"), params.get("status"), params.get("source", "")
    if not (isinstance(cell, str) and isinstance(source, str)) or status not in _RUN_STATUSES:
        raise InvalidCall(f"`cell` is an id, `status` one of {', '.join(_RUN_STATUSES)}")
    count, life = params.get("count"), params.get("life")
    began, seconds = params.get("began"), params.get("seconds")
    return ExecutionRecord(
        cell=cell,
        index=-1,
        hash=hash_cell("code", source),
        source=source,
        kernel=life if isinstance(life, str) else "",
        status=status,
        count=count if isinstance(count, int) else None,
        began=float(began) if isinstance(began, (int, float)) else time.time(),
        seconds=float(seconds) if isinstance(seconds, (int, float)) else 0.0,
        actor="",
    )


def _read_presence(params: Mapping[str, Any]) -> Presence:
    """Read where a person is.

    Raises:
        InvalidCall: it has the wrong shape.
    """
    active, selected = params.get("active"), params.get("selected", [])
    if not isinstance(active, (str, type(None))) or not (
        isinstance(selected, list) and all(isinstance(each, str) for each in selected)
    ):
        raise InvalidCall("`active` is a cell id, `selected` a list of them")
    return Presence(
        active,
        tuple(selected),
        mode="edit" if params.get("mode") == "edit" else "command",
        focused=params.get("focused") is True,
        dirty=params.get("dirty") is True,
    )


def _read_kernel(
    params: Mapping[str, Any], known: KernelAddress | None = None
) -> KernelAddress | None:
    """Read which kernel the editor runs the notebook in; `known` is what it had said before.

    Raises:
        InvalidCall: it has the wrong shape.
    """
    found = params.get("kernel")
    if found is None:
        return None
    try:
        server, kernel_id, token = found["server"], found["id"], found.get("token")
    except (KeyError, TypeError, AttributeError):
        raise InvalidCall("`kernel` needs a `server` and an `id`") from None
    if not (isinstance(server, str) and isinstance(kernel_id, str)):
        raise InvalidCall("`kernel` needs a `server` and an `id`")
    life = found.get("life")
    if not isinstance(life, str):
        life = known.life if known is not None and known.kernel_id == kernel_id else None
    return KernelAddress(server, kernel_id, token if isinstance(token, str) else None, life)


_MOST_CHANGES = 200  # of one notebook; older ones are accepted silently


class OpenReviews:
    """Keeps the events `changed` of notebooks that an editor had open, until they are accepted.

    So a page that is loaded again, or opened later, shows what it showed before, and what was
    changed meanwhile.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._guard = threading.Lock()
        self._open: dict[str, OrderedDict[str, Event]] = {}
        hub.events.subscribe(None, self._note)

    def begin(self, real: str) -> None:
        """Keep the changes of a notebook from now on."""
        with self._guard:
            self._open.setdefault(real, OrderedDict())

    def move(self, old: str, new: str) -> None:
        """Note that a notebook is called otherwise now."""
        with self._guard:
            if old in self._open:
                self._open[new] = self._open.pop(old)

    def list(self, real: str) -> list[Event]:
        """Return the changes that were neither accepted nor undone, the oldest first; blocks."""
        with self._guard:
            found = [dict(event) for event in self._open.get(real, {}).values()]
        return [event for event in found if not self._is_undone(real, event["change"])]

    def accept(self, real: str, changes: Iterable[str], cells: Iterable[str]) -> None:
        """Forget that these changes touched these cells."""
        with self._guard:
            kept = self._open.get(real, OrderedDict())
            for name in changes:
                if name in kept:
                    left = [cell for cell in kept[name]["cells"] if cell not in set(cells)]
                    kept[name] = {**kept[name], "cells": left}
                    if not left:
                        del kept[name]

    def find_before(self, real: str, change: str, cell: str) -> str | None:
        """Return the source of a cell before a change; None if there was no such cell; blocks.

        Raises:
            ChangeNotFound: there is no such change.
        """
        state = self._hub.journal.state(real, change, side="before")
        cells = Notebook.of_state(state).cells
        return next((each.source for each in cells if each.handle == cell), None)

    def _is_undone(self, real: str, change: str) -> bool:
        with contextlib.suppress(CellwrightError):
            return self._hub.journal.get(real, change).undone_by is not None
        return True  # forgotten: it cannot be undone any more

    def _note(self, event: Event) -> None:
        if event["event"] != "changed" or not event.get("change"):
            return
        with self._guard:
            kept = self._open.get(event["notebook"])
            if kept is not None:
                kept[event["change"]] = event
                while len(kept) > _MOST_CHANGES:
                    kept.popitem(last=False)
