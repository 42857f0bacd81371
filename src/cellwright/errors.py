"""Every error Cellwright raises on purpose.

CellwrightError                    INTERNAL_ERROR
├── DocumentError                  DOCUMENT_ERROR
│   ├── NotebookNotFound           NOTEBOOK_NOT_FOUND       also FileNotFoundError
│   ├── UnreadableFile             UNREADABLE_FILE          also OSError
│   ├── NotebookTooLarge           NOTEBOOK_TOO_LARGE
│   ├── InvalidNotebook            INVALID_NOTEBOOK         also ValueError
│   │   ├── InvalidJson            INVALID_JSON
│   │   ├── NotUtf8                NOT_UTF8
│   │   ├── DuplicateKey           DUPLICATE_KEY
│   │   ├── TooDeep                TOO_DEEP
│   │   └── InvalidCell            INVALID_CELL
│   ├── UnsupportedVersion         UNSUPPORTED_VERSION
│   ├── NeedsUpgrade               NEEDS_UPGRADE
│   ├── CellNotFound               CELL_NOT_FOUND           also LookupError
│   ├── AmbiguousCell              AMBIGUOUS_CELL           also LookupError
│   ├── InvalidEdit                INVALID_EDIT             also ValueError
│   ├── TextMismatch               TEXT_MISMATCH            also ValueError
│   ├── InvalidMetadata            INVALID_METADATA         also ValueError
│   ├── InvalidText                INVALID_TEXT             also ValueError
│   ├── InvalidSelector            INVALID_SELECTOR         also ValueError
│   ├── Conflict                   CONFLICT
│   └── UnknownRevision            UNKNOWN_REVISION         also LookupError
├── SaveError                      SAVE_ERROR
│   ├── NotSaved                   NOT_SAVED                also OSError
│   ├── ReadOnlyNotebook           READ_ONLY                also PermissionError
│   ├── HardLinked                 HARD_LINKED
│   ├── OwnerWouldChange           OWNER_WOULD_CHANGE       also PermissionError
│   ├── Locked                     LOCKED                   also TimeoutError
│   └── DurabilityUnconfirmed      DURABILITY_UNCONFIRMED   also OSError
├── HistoryError                   HISTORY_ERROR
│   ├── JournalUnavailable         JOURNAL_UNAVAILABLE
│   ├── ChangeNotFound             CHANGE_NOT_FOUND         also LookupError
│   └── NothingToUndo              NOTHING_TO_UNDO          also LookupError
├── KernelError                    KERNEL_ERROR
│   ├── KernelMissing              KERNEL_MISSING           also LookupError
│   ├── KernelStartFailed          KERNEL_START_FAILED
│   ├── KernelUnreachable          KERNEL_UNREACHABLE       also ConnectionError
│   ├── KernelCannot               KERNEL_CANNOT            also NotImplementedError
│   ├── KernelDied                 KERNEL_DIED
│   ├── RestartLimit               RESTART_LIMIT
│   ├── SessionNotFound            SESSION_NOT_FOUND        also LookupError
│   ├── SessionsBusy               SESSIONS_BUSY            also TimeoutError
│   ├── ResetInProgress            RESET_IN_PROGRESS
│   ├── ExecutionTimedOut          EXECUTION_TIMED_OUT      also TimeoutError
│   ├── ExecutionCancelled         EXECUTION_CANCELLED
│   └── CellFailed                 CELL_FAILED
├── OutputError                    OUTPUT_ERROR
│   ├── ArtifactNotFound           ARTIFACT_NOT_FOUND       also LookupError
│   └── ArtifactsUnavailable       ARTIFACTS_UNAVAILABLE    also OSError
├── SystemRefused                  SYSTEM_REFUSED           also OSError
├── ModeForbids                    MODE_FORBIDS             also PermissionError
├── WorkspaceError                 WORKSPACE_ERROR
│   ├── OutsideRoot                OUTSIDE_ROOT             also PermissionError
│   ├── AlreadyExists              ALREADY_EXISTS           also FileExistsError
│   ├── OwnedElsewhere             OWNED_ELSEWHERE
│   ├── RunNotFound                RUN_NOT_FOUND            also LookupError
│   └── ChatBusy                   CHAT_BUSY
├── EditorError                    EDITOR_ERROR
│   ├── EditorSilent               EDITOR_SILENT            also TimeoutError
│   ├── EditorLost                 EDITOR_LOST              also ConnectionError
│   └── EditorUnfit                EDITOR_UNFIT
├── ModelError                     MODEL_ERROR
│   ├── UnknownModel               UNKNOWN_MODEL            also LookupError
│   ├── ModelNotConfigured         MODEL_NOT_CONFIGURED
│   ├── ModelRefused               MODEL_REFUSED            also PermissionError
│   ├── ConversationTooLong        CONVERSATION_TOO_LONG
│   ├── ModelRejected              MODEL_REJECTED           also ValueError
│   └── ModelUnavailable           MODEL_UNAVAILABLE        also ConnectionError
├── EngineError                    ENGINE_ERROR
│   ├── EngineUnavailable          ENGINE_UNAVAILABLE       also ConnectionError
│   ├── EngineLost                 ENGINE_LOST              also ConnectionError
│   ├── EngineDraining             ENGINE_DRAINING
│   └── InvalidCall                INVALID_CALL             also ValueError
└── ConfigError                    CONFIG_ERROR
    ├── UnknownSetting             UNKNOWN_SETTING          also ValueError
    ├── InvalidSetting             INVALID_SETTING          also ValueError
    ├── BadConfigFile              BAD_CONFIG_FILE          also ValueError
    └── UnsafeDirectory            UNSAFE_DIRECTORY         also PermissionError

A family ends in `Error`; a leaf states the fact. Constructors take facts and word the sentence,
so that each message is written once. An error means that nothing was changed, unless its own
text says otherwise: `DurabilityUnconfirmed` does, and so do the errors of an editor.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar, Self


class CellwrightError(Exception):
    """Base of all errors raised on purpose.

    `code` is stable and goes over the wire; the message is for people and may change.
    `hint` says what to try next, in words that fit every door; a door adds its own next step (a
    flag, a tool, an argument). `retryable` says whether the same call may work later.
    """

    code: ClassVar[str] = "INTERNAL_ERROR"
    retryable: bool = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = _on_one_line(message)
        super().__init__(message)
        self.message = message
        self.hint = hint and _on_one_line(hint)

    def suggest_retry(self, hint: str) -> None:
        """Say that the same call may work later, in this one case."""
        self.retryable = True
        self.hint = f"{hint}. {self.hint}" if self.hint else hint

    def __reduce__(self) -> tuple[object, ...]:
        # Constructors take facts, which pickle does not know; it gets the finished error.
        return (_restore, (type(self), self.__dict__))

    @classmethod
    def restore(cls, state: dict[str, object]) -> Self:
        """Return an error with these attributes; `message` must be one of them."""
        error = cls.__new__(cls, state["message"])
        error.args = (state["message"],)
        error.__dict__.update(state)
        return error

    def __str__(self) -> str:
        # An OSError parent would print "[Errno …]"; the sentence is ours in every leaf.
        return self.message


def _restore(kind: type[CellwrightError], state: dict[str, object]) -> CellwrightError:
    return kind.restore(state)


def _on_one_line(text: str) -> str:
    # Paths, ids and keys come from outside, and may hold line breaks and escape sequences.
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class DocumentError(CellwrightError):
    """A notebook could not be read, or an edit could not be applied to it."""

    code = "DOCUMENT_ERROR"


class NotebookNotFound(DocumentError, FileNotFoundError):
    """There is no file at that path."""

    code = "NOTEBOOK_NOT_FOUND"

    def __init__(self, path: str, *, hint: str | None = None) -> None:
        super().__init__(f"No notebook at {path}", hint=hint or "Check the path, or create it")
        self.path = path

    def under(self, path: str) -> NotebookNotFound:
        """The same about the file as its user names it."""
        found = NotebookNotFound(path, hint=self.hint)
        found.retryable = self.retryable
        return found


class UnreadableFile(DocumentError, OSError):
    """The path is not a regular file, or the system refused to read it."""

    code = "UNREADABLE_FILE"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"Cannot read {path}: {reason}", hint="Give the path of an .ipynb file")
        self.path = path


class NotebookTooLarge(DocumentError):
    """The file is larger than the limit, and was not read."""

    code = "NOTEBOOK_TOO_LARGE"

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(
            f"{path} has {size:,} bytes; the limit is {limit:,}",
            hint="Raise max_file_bytes if this file really is a notebook",
        )
        self.path = path
        self.size = size
        self.limit = limit


class InvalidNotebook(DocumentError, ValueError):
    """The bytes are not a notebook."""

    code = "INVALID_NOTEBOOK"

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason, hint=hint)


class InvalidJson(InvalidNotebook):
    """The bytes are not JSON; `line` and `column` count from 1."""

    code = "INVALID_JSON"

    def __init__(self, reason: str, *, line: int, column: int) -> None:
        super().__init__(
            f"Not valid JSON at line {line}, column {column}: {reason}",
            hint="Repair the file at that place, or restore an earlier version",
        )
        self.line = line
        self.column = column


class NotUtf8(InvalidNotebook):
    """The bytes are not UTF-8."""

    code = "NOT_UTF8"

    def __init__(self, offset: int, *, looks_like: str | None = None) -> None:
        what = f"Not UTF-8 (looks like {looks_like})" if looks_like else "Not UTF-8"
        super().__init__(f"{what} at byte {offset}", hint="Convert the file to UTF-8 first")
        self.offset = offset


class DuplicateKey(InvalidNotebook):
    """A key occurs twice in one object, so that an edit could hit the wrong one."""

    code = "DUPLICATE_KEY"

    def __init__(self, key: str, where: str) -> None:
        super().__init__(f"Duplicate key `{key}` in {where}", hint="Remove one of the two")
        self.key = key


class TooDeep(InvalidNotebook):
    """A value is nested deeper than can be turned into Python objects."""

    code = "TOO_DEEP"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is nested too deeply to be decoded",
            hint="The rest of the notebook can be read and edited",
        )


class InvalidCell(InvalidNotebook):
    """A cell is not what its type demands; the other cells are usable."""

    code = "INVALID_CELL"

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(
            f"Cell {index} is not a valid cell: {problem}",
            hint="Other cells can be read and edited; this one can be moved or deleted",
        )
        self.index = index
        self.problem = problem


class UnsupportedVersion(DocumentError):
    """The notebook's format version is not one we know."""

    code = "UNSUPPORTED_VERSION"

    def __init__(self, version: str) -> None:
        super().__init__(
            f"nbformat {version} is not supported", hint="Versions 2 to 4 can be read, 4 edited"
        )
        self.version = version


class NeedsUpgrade(DocumentError):
    """An old notebook can be read, but is written only by an explicit upgrade."""

    code = "NEEDS_UPGRADE"

    def __init__(self, version: str) -> None:
        super().__init__(
            f"This notebook is nbformat {version} and is not edited in place",
            hint="Upgrade it to nbformat 4.5 first",
        )
        self.version = version


class CellNotFound(DocumentError, LookupError):
    """There is no cell with that id or index."""

    code = "CELL_NOT_FOUND"

    def __init__(self, ref: object, *, near: Sequence[str] = (), count: int = 0) -> None:
        if near:
            hint = f"Did you mean {', '.join(near)}?"
        elif count:
            cells = "1 cell: cell-0" if count == 1 else f"{count} cells: cell-0 to cell-{count - 1}"
            hint = f"The notebook has {cells}"
        else:
            hint = "The notebook has no cells"
        super().__init__(f"No cell `{ref}`", hint=hint)
        self.ref = ref
        self.near = tuple(near)


class AmbiguousCell(DocumentError, LookupError):
    """Several cells have that id."""

    code = "AMBIGUOUS_CELL"

    def __init__(self, ref: str, indices: Sequence[int]) -> None:
        super().__init__(
            f"{len(indices)} cells have the id `{ref}`",
            hint=f"Name one by position: {', '.join(f'cell-{i}' for i in indices)}",
        )
        self.ref = ref
        self.indices = tuple(indices)


class InvalidEdit(DocumentError, ValueError):
    """An edit makes no sense as written; `position` is its place in the list."""

    code = "INVALID_EDIT"

    def __init__(
        self, reason: str, *, position: int | None = None, hint: str | None = None
    ) -> None:
        where = "" if position is None else f"Edit {position}: "
        super().__init__(where + reason, hint=hint)
        self.position = position


class TextMismatch(DocumentError, ValueError):
    """`replace_text` did not find its text exactly as often as it must."""

    code = "TEXT_MISMATCH"

    def __init__(self, handle: str, found: int, wanted: int) -> None:
        super().__init__(
            f"The text occurs {found} times in cell {handle}, not {wanted}",
            hint="Read the cell again" if not found else "Give more of the text, or `count`",
        )
        self.found = found


class InvalidMetadata(DocumentError, ValueError):
    """The metadata would make the notebook invalid, or cannot be written as JSON."""

    code = "INVALID_METADATA"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid metadata: {reason}", hint="See the nbformat schema")


class InvalidText(DocumentError, ValueError):
    """The text is not the text view of a notebook; `line` counts from 1."""

    code = "INVALID_TEXT"

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(
            f"Line {line}: {reason}",
            hint="Every cell begins with a line such as `# %% [code]` or `# %% [markdown] cell:3`",
        )
        self.line = line


class InvalidSelector(DocumentError, ValueError):
    """A selector of lines, cells or sections cannot be understood, or finds nothing."""

    code = "INVALID_SELECTOR"

    def __init__(self, selector: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"Selector `{selector}`: {reason}",
            hint=hint or "Such as 5-16, 20+10, cell=ID, section=Heading, outline or raw",
        )
        self.selector = selector


class CellConflict:
    """One cell (or, with no `index`, the notebook's metadata) on which two sides disagree.

    A side is None when it does not hold the cell, or when what it held is not known.
    `index` and `handle` are those of the notebook as it is now.
    """

    __slots__ = ("base", "current", "handle", "index", "other", "reason")

    def __init__(
        self,
        handle: str,
        index: int | None,
        reason: str,
        *,
        base: str | None = None,
        current: str | None = None,
        other: str | None = None,
    ) -> None:
        self.handle = handle
        self.index = index
        self.reason = reason
        self.base = base
        self.current = current
        self.other = other

    def __repr__(self) -> str:
        return f"<CellConflict {self.handle}: {self.reason}>"


class Conflict(DocumentError):
    """The notebook changed since the edit was made; nothing was applied.

    `cells` shows, for every cell concerned, what each side holds.
    """

    code = "CONFLICT"

    def __init__(self, reason: str, *, cells: Sequence[CellConflict] = ()) -> None:
        super().__init__(reason, hint="Read the notebook again and repeat the edit")
        self.cells = tuple(cells)


class UnknownRevision(DocumentError, LookupError):
    """That base revision was never given out, or is forgotten."""

    code = "UNKNOWN_REVISION"

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"Unknown base revision `{revision}`", hint="Read the notebook and use its revision"
        )
        self.revision = revision


class SaveError(CellwrightError):
    """A notebook could not be saved."""

    code = "SAVE_ERROR"


class NotSaved(SaveError, OSError):
    """The system refused the save; the file is untouched."""

    code = "NOT_SAVED"
    retryable = True

    def __init__(self, path: str, step: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"Not saved, {path} is unchanged: {reason} ({step})",
            hint=hint or "Free disk space or change the permissions, then save again",
        )
        self.path = path
        self.step = step


class ReadOnlyNotebook(SaveError, PermissionError):
    """The file or its folder is read-only; the file is untouched."""

    code = "READ_ONLY"

    def __init__(self, path: str, what: str = "is read-only") -> None:
        super().__init__(f"{path} {what}", hint="Make it writable, or write to another path")
        self.path = path


class HardLinked(SaveError):
    """The file has other names, which an atomic save would leave behind."""

    code = "HARD_LINKED"

    def __init__(self, path: str, links: int) -> None:
        super().__init__(
            f"{path} has {links} names (hard links); saving would split them",
            hint="Give this name a file of its own: copy it, and rename the copy to it",
        )
        self.path = path
        self.links = links


class OwnerWouldChange(SaveError, PermissionError):
    """The file belongs to another user, and saving would change its owner."""

    code = "OWNER_WOULD_CHANGE"

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(
            f"{path} belongs to {owner}; saving would change its owner",
            hint="Ask the owner to save it, or write to a path of your own",
        )
        self.path = path


class Locked(SaveError, TimeoutError):
    """Another writer held the notebook for the whole wait."""

    code = "LOCKED"
    retryable = True

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(
            f"{path} was locked by another writer for {seconds:g} s", hint="Try again later"
        )
        self.path = path


class DurabilityUnconfirmed(SaveError, OSError):
    """The new bytes are in place under the final name, but may not survive a power cut."""

    code = "DURABILITY_UNCONFIRMED"

    def __init__(self, path: str, step: str, reason: str, *, replaced: bool = False) -> None:
        if replaced:
            message = f"{path} was saved, and by now {reason} ({step})"
            hint = "Another program replaced it right after; read it to see what it holds"
        else:
            message = (
                f"{path} holds the new bytes, but may lose them in a power cut: {reason} ({step})"
            )
            hint = "Do not repeat the edit; check the disk and read the file back"
        super().__init__(message, hint=hint)
        self.path = path
        self.step = step
        self.revision: str | None = None

    def name_bytes(self, revision: str) -> None:
        """Say which bytes are in place: those of the notebook with this revision."""
        self.revision = revision
        self.message = f"{self.message}; their revision is {revision}"
        self.args = (self.message,)


class HistoryError(CellwrightError):
    """The history of a notebook cannot answer."""

    code = "HISTORY_ERROR"


class JournalUnavailable(HistoryError):
    """The journal cannot be read or written; edits work without it."""

    code = "JOURNAL_UNAVAILABLE"
    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The journal cannot be used: {reason}", hint="Edits work, but are not in the history"
        )


class ChangeNotFound(HistoryError, LookupError):
    """No recorded change has that id."""

    code = "CHANGE_NOT_FOUND"

    def __init__(self, change: str) -> None:
        super().__init__(f"No change `{change}`", hint="The log lists the changes")
        self.change = change


class NothingToUndo(HistoryError, LookupError):
    """There is no change of this actor left to undo or redo."""

    code = "NOTHING_TO_UNDO"

    def __init__(self, what: str, *, hint: str = "Name a change by its id from the log") -> None:
        super().__init__(f"Nothing to {what}", hint=hint)
        self.what = what


class KernelError(CellwrightError):
    """A kernel could not be found, started, reached or kept."""

    code = "KERNEL_ERROR"


class KernelMissing(KernelError, LookupError):
    """There is no such kernel here, or the interpreter that was chosen has none."""

    code = "KERNEL_MISSING"

    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(what, hint=hint)


class KernelStartFailed(KernelError):
    """A kernel was started and did not become ready; nothing of it is left."""

    code = "KERNEL_START_FAILED"
    retryable = True

    def __init__(self, name: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"Kernel `{name}` did not start: {reason}",
            hint=hint or "Try again, or choose another kernel",
        )
        self.name = name


class KernelUnreachable(KernelError, ConnectionError):
    """A Jupyter server does not answer, or refuses the connection."""

    code = "KERNEL_UNREACHABLE"
    retryable = True

    def __init__(self, url: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"No answer from {url}: {reason}", hint=hint or "Check the address and the token"
        )
        self.url = url


class KernelCannot(KernelError, NotImplementedError):
    """This kind of kernel has no such ability."""

    code = "KERNEL_CANNOT"

    def __init__(self, name: str, what: str, *, hint: str | None = None) -> None:
        super().__init__(f"Kernel `{name}` cannot {what}", hint=hint or "Use a Jupyter kernel")
        self.name = name


class KernelDied(KernelError):
    """A kernel ended while a cell ran; its variables are lost."""

    code = "KERNEL_DIED"

    def __init__(self, how: str) -> None:
        super().__init__(
            f"The kernel died: {how}",
            hint="Its variables are lost; run the cells that define them again",
        )


class RestartLimit(KernelError):
    """A session's kernel died again and again without a success between."""

    code = "RESTART_LIMIT"

    def __init__(self) -> None:
        super().__init__(
            "Python kernel restarted too many times in this session",
            hint="Something kills it each time; reset the session, or use another",
        )


class SessionNotFound(KernelError, LookupError):
    """No session of that name is running."""

    code = "SESSION_NOT_FOUND"

    def __init__(self, session: str) -> None:
        super().__init__(f"No session `{session}`", hint="List the sessions to see their names")
        self.session = session


class SessionsBusy(KernelError, TimeoutError):
    """Every session that may be kept was busy for the whole wait."""

    code = "SESSIONS_BUSY"
    retryable = True

    def __init__(self, count: int, seconds: float) -> None:
        super().__init__(
            f"All {count} sessions were busy for {seconds:g} s",
            hint="Wait for one, interrupt one, or raise eval_sessions_kept",
        )


class ResetInProgress(KernelError):
    """Another reset of the same session is still running."""

    code = "RESET_IN_PROGRESS"
    retryable = True

    def __init__(self, session: str) -> None:
        super().__init__(
            f"Session `{session}` is being reset already", hint="Wait until that reset is done"
        )
        self.session = session


class ExecutionTimedOut(KernelError, TimeoutError):
    """A cell ran longer than it was given, and was stopped."""

    code = "EXECUTION_TIMED_OUT"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"Command timed out after {seconds:g} seconds", hint="Give it a longer timeout"
        )
        self.seconds = seconds


class ExecutionCancelled(KernelError):
    """A cell was interrupted."""

    code = "EXECUTION_CANCELLED"

    def __init__(self) -> None:
        super().__init__("The cell was interrupted", hint="Run it again if you need its result")


class CellFailed(KernelError):
    """A cell raised an exception."""

    code = "CELL_FAILED"

    def __init__(self, ename: str, evalue: str) -> None:
        super().__init__(f"{ename}: {evalue}", hint="Its traceback is in the outputs")
        self.ename = ename
        self.evalue = evalue


class OutputError(CellwrightError):
    """Stored output cannot be read or written."""

    code = "OUTPUT_ERROR"


class ArtifactNotFound(OutputError, LookupError):
    """No artifact has that id, or it was removed to make room."""

    code = "ARTIFACT_NOT_FOUND"

    def __init__(self, artifact: str) -> None:
        super().__init__(
            f"No artifact `{artifact}`",
            hint="Old ones make room for new ones; run the cell again for its output",
        )
        self.artifact = artifact


class ArtifactsUnavailable(OutputError, OSError):
    """The store of artifacts cannot be read or written."""

    code = "ARTIFACTS_UNAVAILABLE"
    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Artifacts cannot be stored: {reason}",
            hint="Free disk space or change the permissions, then run again",
        )


class SystemRefused(CellwrightError, OSError):
    """The system refused something small that any work needs: a descriptor, memory, a folder."""

    code = "SYSTEM_REFUSED"
    retryable = True

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"The system refused: {reason}", hint=hint or "Free what is missing, then try again"
        )


def explain_exception(error: Exception) -> CellwrightError:
    """An exception as one of our errors: what the system did is not called a bug of ours."""
    found: CellwrightError
    if isinstance(error, CellwrightError):
        return error
    if isinstance(error, MemoryError):
        found = SystemRefused("it has no more memory")
    elif isinstance(error, FileNotFoundError) and _has_lost_folder():
        found = SystemRefused("the working folder was deleted", hint="Go to a folder that exists")
    elif isinstance(error, OSError) and error.errno is not None:
        name = f" ({error.filename})" if isinstance(error.filename, str) else ""
        found = SystemRefused(f"{error.strerror or error}{name}")
    else:
        found = CellwrightError(f"{type(error).__name__}: {error}")
    found.__cause__ = error
    return found


def _has_lost_folder() -> bool:
    import os

    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


class ModeForbids(CellwrightError, PermissionError):
    """The caller's mode does not allow this."""

    code = "MODE_FORBIDS"

    def __init__(self, what: str, mode: str, needed: str) -> None:
        super().__init__(
            f"Mode `{mode}` does not allow to {what}", hint=f"Switch to mode `{needed}`"
        )
        self.mode = mode
        self.needed = needed


class WorkspaceError(CellwrightError):
    """A path is not one that this workspace may touch."""

    code = "WORKSPACE_ERROR"


class OutsideRoot(WorkspaceError, PermissionError):
    """The path leads out of the folder that the caller is confined to."""

    code = "OUTSIDE_ROOT"

    def __init__(self, path: str, root: str) -> None:
        super().__init__(
            f"{path} is outside {root}", hint="Give a path inside it, or work in another root"
        )
        self.path = path


class AlreadyExists(WorkspaceError, FileExistsError):
    """There is a file already where a new one should be made."""

    code = "ALREADY_EXISTS"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already", hint="Choose another path, or edit it")
        self.path = path


class OwnedElsewhere(WorkspaceError):
    """Another process runs this notebook; a second kernel would see another state."""

    code = "OWNED_ELSEWHERE"
    retryable = True

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(
            f"{path} is owned by {holder}",
            hint="Work through that process, or end the notebook's kernel there first",
        )
        self.path = path
        self.holder = holder


class RunNotFound(WorkspaceError, LookupError):
    """No run has that id, or it was forgotten: it ended long ago, or with its engine."""

    code = "RUN_NOT_FOUND"

    def __init__(self, run: str) -> None:
        super().__init__(
            f"There is no run {run}; runs end with their engine",
            hint="List the runs, or read the notebook to see how its cells ended",
        )
        self.run = run


class ChatBusy(WorkspaceError):
    """A turn of the chat runs, here or in another program."""

    code = "CHAT_BUSY"
    retryable = True

    def __init__(self, chat: str, *, elsewhere: bool = False) -> None:
        where = " in another program" if elsewhere else ""
        super().__init__(
            f"A turn of the chat {chat} runs{where}", hint="Wait for its end, or stop it there"
        )
        self.chat = chat


class EditorError(CellwrightError):
    """The editor that has the notebook open did not do its part."""

    code = "EDITOR_ERROR"


class EditorSilent(EditorError, TimeoutError):
    """The editor that has the notebook open did not answer in time."""

    code = "EDITOR_SILENT"
    retryable = True

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(
            f"The editor that has {path} open did not answer within {seconds:g} s; "
            "the change that was asked for may still be made",
            hint="Look at the page, or close it; then read the notebook and try again",
        )
        self.path = path


class EditorLost(EditorError, ConnectionError):
    """The editor that had the notebook open is gone."""

    code = "EDITOR_LOST"
    retryable = True

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The editor that had {path} open is gone; changes that it had not saved are lost",
            hint="Read the notebook again; it is read from the file now",
        )
        self.path = path


class EditorUnfit(EditorError):
    """The editor that has the notebook open refused a request, or answered it wrongly."""

    code = "EDITOR_UNFIT"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"The editor that has {path} open: {reason}",
            hint="Reload the page, then read the notebook and try again",
        )
        self.path = path


class ModelError(CellwrightError):
    """A language model could not be asked, or did not answer."""

    code = "MODEL_ERROR"


class UnknownModel(ModelError, LookupError):
    """There is no model of that name, here or at the provider."""

    code = "UNKNOWN_MODEL"

    def __init__(self, name: str, reason: str, *, suggestion: str | None = None) -> None:
        super().__init__(
            f"There is no model `{name}`: {reason}",
            hint=f"Did you mean `{suggestion}`?"
            if suggestion
            else "Models are named as PROVIDER:NAME; see what the provider offers",
        )
        self.name = name


class ModelNotConfigured(ModelError):
    """Something that a model needs is missing here: its library, or its key."""

    code = "MODEL_NOT_CONFIGURED"

    def __init__(self, name: str, missing: str, *, hint: str) -> None:
        super().__init__(f"The model `{name}` cannot be used: {missing}", hint=hint)
        self.name = name


class ModelRefused(ModelError, PermissionError):
    """The provider does not accept the key, or does not allow this with it."""

    code = "MODEL_REFUSED"

    def __init__(self, name: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"The provider of `{name}` refused: {reason}",
            hint=hint or "Check the key, and what the account may use",
        )
        self.name = name


class ConversationTooLong(ModelError):
    """The messages are more than the model can read at once."""

    code = "CONVERSATION_TOO_LONG"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"The conversation is too long for `{name}`: {reason}",
            hint="Begin a new chat, or select fewer cells",
        )
        self.name = name


class ModelRejected(ModelError, ValueError):
    """The provider does not understand the request; asking again would not help."""

    code = "MODEL_REJECTED"

    def __init__(self, name: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"The provider of `{name}` rejected the request: {reason}",
            hint=hint or "Choose another model, or begin a new chat",
        )
        self.name = name


class ModelUnavailable(ModelError, ConnectionError):
    """A model did not answer, or stopped in the middle, after `characters` of its answer."""

    code = "MODEL_UNAVAILABLE"
    retryable = True

    def __init__(self, name: str, reason: str, *, characters: int = 0, tries: int = 1) -> None:
        if characters:
            what = f"`{name}` stopped after {characters:,} characters"
        else:
            what = f"`{name}` does not answer"
            what += f" ({tries} tries)" if tries > 1 else ""
        super().__init__(f"{what}: {reason}", hint="Ask again in a while, or choose another model")
        self.name = name
        self.characters = characters
        self.tries = tries


class EngineError(CellwrightError):
    """The background engine could not be used."""

    code = "ENGINE_ERROR"


class EngineUnavailable(EngineError, ConnectionError):
    """No engine runs, and none could be started."""

    code = "ENGINE_UNAVAILABLE"
    retryable = True

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"The engine cannot be reached: {reason}",
            hint=hint or "Its log may say why; you can also work without it",
        )


class EngineLost(EngineError, ConnectionError):
    """The engine went away in the middle of a call; what the call did is not known."""

    code = "ENGINE_LOST"

    def __init__(self, what: str, how: str = "went away") -> None:
        super().__init__(
            f"The engine {how} during `{what}`; whether it was done is not known",
            hint="Read the notebook to see; the next call starts a new engine",
        )
        self.how = how


class EngineDraining(EngineError):
    """The engine is of another version, or is about to leave, and takes no new work."""

    code = "ENGINE_DRAINING"
    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The engine takes no new work: {reason}",
            hint="It ends when its sessions do, or when it is stopped",
        )


class InvalidCall(EngineError, ValueError):
    """A message to the engine that it does not understand."""

    code = "INVALID_CALL"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid call to the engine: {reason}")


class ConfigError(CellwrightError):
    """A setting, a configuration file or a directory of ours is wrong."""

    code = "CONFIG_ERROR"


class UnknownSetting(ConfigError, ValueError):
    """There is no such setting."""

    code = "UNKNOWN_SETTING"

    def __init__(self, key: str, place: str, suggestion: str | None = None) -> None:
        super().__init__(
            f"Unknown setting `{key}` in {place}",
            hint=f"Did you mean `{suggestion}`?" if suggestion else "Remove it",
        )
        self.key = key
        self.place = place


class InvalidSetting(ConfigError, ValueError):
    """A setting has a value of the wrong type or out of range."""

    code = "INVALID_SETTING"

    def __init__(self, key: str, value: object, place: str, expected: str) -> None:
        super().__init__(f"Setting `{key}` in {place} is {value!r}", hint=f"It must be {expected}")
        self.key = key
        self.place = place


class BadConfigFile(ConfigError, ValueError):
    """A configuration file cannot be read."""

    code = "BAD_CONFIG_FILE"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"Cannot read {place}: {reason}", hint="Repair or remove the file")
        self.place = place


class UnsafeDirectory(ConfigError, PermissionError):
    """A directory of ours is missing, or another user could write to it."""

    code = "UNSAFE_DIRECTORY"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"The directory {path} cannot be trusted: {reason}",
            hint="Remove it, or point CELLWRIGHT_RUNTIME_DIR at a folder of mode 0700",
        )
        self.path = path
