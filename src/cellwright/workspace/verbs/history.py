"""Verbs on the history of a notebook: log, diff, undo, redo, restore, blame, backups, forget."""

from __future__ import annotations

import contextlib
import os

from cellwright.document.change import Change
from cellwright.errors import (
    ArtifactNotFound,
    CellwrightError,
    ChangeNotFound,
    NotebookNotFound,
    NothingToUndo,
    UnreadableFile,
)
from cellwright.workspace.api.answers import BlameAnswer, ForgetAnswer, describe_change
from cellwright.workspace.paths import real_path, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cellwright.document.change import State
    from cellwright.document.notebook import Notebook
    from cellwright.journal import Entry
    from cellwright.journal.executions import ExecutionRecord
    from cellwright.journal.history import Backup
    from cellwright.workspace.api import requests
    from cellwright.workspace.api.answers import DiffAnswer, EditAnswer
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.notebook import OpenNotebook

_ALL = 2**31


def list_changes(caller: Caller, request: requests.LogRequest) -> list[Entry]:
    """Return the changes, the newest first."""
    book = caller.open(request.path).open_as_recorded()
    book.catch_up()
    limit = _ALL if request.limit is None else request.limit
    entries = book.journal.log(book.real, limit=limit)
    _refuse_unknown(book, is_recorded=bool(entries))
    return _follow_names(book, entries, limit) if request.follow else entries


def _refuse_unknown(book: OpenNotebook, *, is_recorded: bool) -> None:
    """Raise if nothing is on record and there is no file: then the name is wrong.

    The history of a notebook that was deleted, or is broken, can be seen.
    """
    if is_recorded:
        return
    try:
        book.host.read()
    except (NotebookNotFound, UnreadableFile):
        raise
    except CellwrightError:
        return


def _follow_names(book: OpenNotebook, entries: list[Entry], limit: int) -> list[Entry]:
    """Add the changes that a notebook had under earlier names."""
    seen = {str(book.real)}
    while len(entries) < limit and not (entries and entries[-1].kind == "create"):
        revision = entries[-1].before if entries else book.host.read().revision
        name = next(
            (
                path
                for path in book.journal.find_by_revision(revision)
                if path not in seen
                and book.caller.knows(f"notebook:{path}")
                and not os.path.lexists(path)
            ),
            None,
        )
        if name is None:
            break
        seen.add(name)
        from dataclasses import replace  # every read imports this module

        earlier = book.journal.log(name, limit=limit - len(entries))
        shown = os.path.relpath(name, book.caller.cwd)
        entries = [*entries, *(replace(entry, path=shown) for entry in earlier)]
    return entries


def list_executions(caller: Caller, request: requests.ExecutionsRequest) -> list[ExecutionRecord]:
    """Return the runs of cells on record, the oldest first."""
    book = caller.open(request.path)
    records = book.journal.executions(book.real)
    _refuse_unknown(book, is_recorded=bool(records))
    return records


def list_backups(caller: Caller, request: requests.BackupsRequest) -> list[Backup]:
    """Return the states that can be restored to the byte, the newest first."""
    book = caller.open(request.path).open_as_recorded()
    backups = book.journal.backups(book.real)
    _refuse_unknown(book, is_recorded=bool(backups))
    return backups


def take_warnings(caller: Caller, request: requests.WarningsRequest) -> list[str]:
    """Return what the journal could not do since this was last asked."""
    return caller.open(request.path).take_warnings()


def blame(caller: Caller, request: requests.BlameRequest) -> list[BlameAnswer]:
    """Return for every cell the change that last touched it."""
    book = caller.open(request.path).open_as_recorded()
    book.catch_up()
    rows = book.journal.blame(book.real)
    answers = []
    for cell in book.host.read().cells:
        row = rows[cell.index] if cell.index < len(rows) else None
        about = {} if row is None else row.to_json()
        answers.append(
            BlameAnswer(**{**about, "index": cell.index, "handle": cell.handle, "type": cell.type})
        )
    return answers


def compare(caller: Caller, request: requests.DiffRequest) -> DiffAnswer:
    """Return what changed between two states."""
    book, after = caller.open(request.path).open_as_recorded(), request.after
    other = after if after is not None and _is_file(book, after) else None
    return describe_change(_compare_states(book, request.before, after), book.name, other)


def undo(caller: Caller, request: requests.UndoRequest) -> EditAnswer:
    """Undo a change, or several as one."""
    book = caller.open(request.path).open_as_recorded()
    newest = _find_newest_of_others(book) if request.change is None else None
    answer = _step(
        book, "undo", lambda notebook: _undo(book, notebook, request.change), request.dry_run
    )
    if newest is None or newest.id == answer.concerns:
        return answer
    warning = (
        f"The newest change, {newest.id}, is by {newest.actor} and stays;"
        f" your own newest one was {answer.concerns}"
    )
    return answer.replace(warnings=[*answer.warnings, warning])


def _find_newest_of_others(book: OpenNotebook) -> Entry | None:
    """The newest change that can be undone, if it is not the caller's."""
    try:
        newest = book.journal.undo_target(book.real)
    except NothingToUndo:
        return None
    return None if newest.actor == book.caller.actor else newest


def redo(caller: Caller, request: requests.RedoRequest) -> EditAnswer:
    """Make a change again that was undone."""
    book = caller.open(request.path).open_as_recorded()
    return _step(
        book, "redo", lambda notebook: _redo(book, notebook, request.change), request.dry_run
    )


def restore(caller: Caller, request: requests.RestoreRequest) -> EditAnswer:
    """Bring back a state to the byte."""
    book = caller.open(request.path).open_as_recorded()
    state = _find_state(book, request.change)
    # A notebook that was deleted can be brought back too: that is when it is needed most.
    return book.change(
        lambda notebook: notebook.become(state),
        create=True,
        dry_run=request.dry_run,
        label=f"restore {request.change}",
        kind="restore",
    )


def forget(caller: Caller, request: requests.ForgetRequest) -> ForgetAnswer:
    """Remove what is recorded about a notebook, or about all, and the artifacts of their runs."""
    from cellwright.journal.repair import list_set_aside

    journal, before, store = caller.journal, request.before, caller.hub.artifacts
    book = None if request.path is None else caller.open(request.path)
    doomed = [
        artifact.id
        for artifact in store.list()
        if (caller.knows(artifact.origin) if book is None else artifact.origin == book.origin)
        and (before is None or artifact.created < before)
    ]
    if not request.dry_run:
        for artifact in doomed:
            with contextlib.suppress(ArtifactNotFound):  # it has just made room for another
                store.delete(artifact)
    found = journal.forget(
        None if book is None else book.real,
        root=None if caller.root is None else real_path(caller.root),
        before=before,
        dry_run=request.dry_run,
    )
    name = None
    if book is not None:
        name = book.name
        is_recorded = bool(doomed or any(found) or journal.log(book.real, limit=1))
        _refuse_unknown(book, is_recorded=is_recorded)
    return ForgetAnswer(name, *found, len(doomed), list_set_aside(journal.path))


def _step(
    book: OpenNotebook,
    kind: str,
    take: Callable[[Notebook], tuple[Change, list[Entry]]],
    dry_run: bool,  # noqa: FBT001
) -> EditAnswer:
    found: list[Entry] = []

    def make(notebook: Notebook) -> Change:
        change, found[:] = take(notebook)
        return change

    answer = book.change(
        make,
        create=not book.is_notebook,  # undoing that a file was made removes it
        dry_run=dry_run,
        kind=kind,
        concerns=found,
    )
    return answer.replace(concerns=" ".join(entry.id for entry in found))


def _find_state(book: OpenNotebook, name: str) -> State:
    """Return a state by name: `now`, `first`, a change id (after it), or a change id and `^` (before)."""
    journal = book.journal
    if name == "now":
        return book.host.read().state
    try:
        if name == "first":
            return journal.first(book.real)
        if name.endswith("^"):
            return journal.state(book.real, name[:-1], side="before")
        return journal.state(book.real, name, side="after")
    except ChangeNotFound:
        _refuse_unknown(book, is_recorded=bool(journal.log(book.real, limit=1)))
        raise


def _compare_states(book: OpenNotebook, before: str | None, after: str | None) -> Change:
    """Return what changed from one state to another.

    One name alone is compared with the file as it is now; no name shows what the newest change,
    and whatever came after it, did. A name that is the path of a file means that file.
    """
    if before is None:
        newest = book.journal.log(book.real, limit=1)
        _refuse_unknown(book, is_recorded=bool(newest))
        if not newest:
            raise NothingToUndo("compare: this notebook has no history")
        before = f"{newest[0].id}^"
    return Change.between(
        _find_state_or_file(book, before), _find_state_or_file(book, after or "now")
    )


def _is_file(book: OpenNotebook, name: str) -> bool:
    """Whether a name means another notebook rather than a state of this one."""
    return name.endswith(".ipynb") and os.path.exists(resolve(name, book.caller.cwd))  # noqa: PTH110


def _undo(
    book: OpenNotebook, notebook: Notebook, names: str | Sequence[str] | None
) -> tuple[Change, list[Entry]]:
    """Undo one change, or several as one, the newest first.

    Raises:
        NothingToUndo: there is none, or all of them were undone before.
        ChangeNotFound: there is no such change.
        Conflict: one of the cells has been changed since.
    """
    journal = book.journal
    if names is None:
        found = [_find_own_change(book)]
    elif isinstance(names, str):
        found = [journal.undo_target(book.real, change_id=names)]
    else:
        found = _list_standing(book, names)
    done: Change | None = None
    for entry in found:
        step = notebook.apply(journal.change(entry, notebook.state).inverse())
        done = step if done is None else done.then(step)
    if done is None:
        raise NothingToUndo("undo: all of these are undone already")
    return done, found


def _find_own_change(book: OpenNotebook) -> Entry:
    """The caller's own newest change; the error names the actor of the newest of all."""
    journal = book.journal
    try:
        return journal.undo_target(book.real, actor=book.caller.actor)
    except NothingToUndo:
        other = journal.undo_target(book.real)
    raise NothingToUndo(f"undo: the newest change, {other.id}, was made by {other.actor}")


def _redo(book: OpenNotebook, notebook: Notebook, name: str | None) -> tuple[Change, list[Entry]]:
    """Make a change again that was undone.

    Raises:
        NothingToUndo: there is none.
        Conflict: one of the cells has been changed since.
    """
    journal = book.journal
    entry = journal.redo_target(book.real, actor=book.caller.actor, change_id=name)
    undo = journal.get(book.real, entry.undone_by or "")
    if undo.concerns == entry.id:  # back to before the undo, with what had run since the change
        return notebook.apply(journal.change(undo, notebook.state).inverse()), [entry]
    return notebook.apply(journal.change(entry, notebook.state)), [entry]


def _list_standing(book: OpenNotebook, names: Sequence[str]) -> list[Entry]:
    """Return those of the named changes that have not been undone, the newest first."""
    journal = book.journal
    found: dict[str, Entry] = {}
    for name in names:
        if not isinstance(name, str):
            raise ChangeNotFound(str(name))
        if journal.get(book.real, name).undone_by is None:
            entry = journal.undo_target(book.real, change_id=name)  # a run cannot be undone
            found[entry.id] = entry
    return sorted(found.values(), key=lambda entry: entry.number, reverse=True)


def _find_state_or_file(book: OpenNotebook, name: str) -> State:
    if _is_file(book, name):
        return book.caller.open(name).load().state
    return _find_state(book, name)
