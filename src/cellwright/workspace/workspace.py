"""The folder a caller works in: where paths resolve, what is allowed, who is asking."""

from __future__ import annotations

import os
from _thread import allocate_lock  # `threading` would cost every command its import

from cellwright.errors import AlreadyExists, InvalidEdit, ModeForbids
from cellwright.workspace.book import Book
from cellwright.workspace.paths import confine, leads_inside, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, Self

    from cellwright.config.settings import Settings
    from cellwright.journal import Journal
    from cellwright.kernel.session import Ask
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.workspace.eval_call import EvalCell
    from cellwright.workspace.evaluation import Progress
    from cellwright.workspace.hub import Hub
    from cellwright.workspace.kernels import Kernels

    Mode = Literal["ask", "edit", "agent"]
    Effect = Literal["read", "edit", "run"]
    Rows = list[dict[str, Any]]  # inside the class, `list` is a verb

# Which mode allows which effect; `edit` only proposes, as the table is by default.
ALLOWED: dict[str, frozenset[str]] = {
    "ask": frozenset({"read"}),
    "edit": frozenset({"read"}),
    "agent": frozenset({"read", "edit", "run"}),
}
_HIDDEN = (".", "__pycache__", "node_modules")


class Workspace:
    """Notebooks below one root, opened by path.

    Args:
        root: paths outside this folder are refused; None confines nothing.
        cwd: relative paths resolve against it; the process's own by default.
        mode: `ask`, `edit` or `agent`; what it forbids is refused, whoever asks.
        actor: who is asking, as `door:name`; an undo takes back that actor's own changes.
        journal: the history to keep; the user's own by default.
        environ: the caller's variables; the process's own by default.
        hub: kernels and history that are shared with other workspaces; its own by default.
        owner: what holds a notebook's kernel alive; the actor by default.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        cwd: str | None = None,
        mode: Mode = "agent",
        actor: str = "python:caller",
        journal: Journal | None = None,
        environ: Mapping[str, str] | None = None,
        hub: Hub | None = None,
        owner: str | None = None,
    ) -> None:
        if mode not in ALLOWED:
            raise InvalidEdit(f"Unknown mode {mode!r}", hint="One of ask, edit, agent")
        self.cwd = cwd or os.getcwd()  # noqa: PTH109  # hot path: no pathlib
        self.root = None if root is None else resolve(os.fspath(root), self.cwd)
        self.mode = mode
        self.actor = actor
        self.owner: str | None = owner or actor
        self._journal = journal
        self._environ = environ
        self._settings: Settings | None = None
        self._hub = hub
        self._making = allocate_lock()
        self._is_guest = hub is not None
        self._kernels: Kernels | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the kernels that were started here, and let go of the journal."""
        if self._hub is not None and not self._is_guest:
            self._hub.close()
            self._hub = self._kernels = None

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables of whoever is asking; kernels get them, secrets taken out."""
        return os.environ if self._environ is None else self._environ

    @property
    def settings(self) -> Settings:
        """The settings that hold in the working folder."""
        if self._settings is None:
            from cellwright.config.loading import load

            self._settings = load(self.cwd, self.environ)
        return self._settings

    @property
    def hub(self) -> Hub:
        """What this caller shares with others of the same process."""
        if self._hub is None:
            from cellwright.workspace.hub import Hub

            with self._making:  # two threads with a hub each would not hear of each other
                if self._hub is None:
                    self._hub = Hub(self.settings, journal=self._journal)
        return self._hub

    @property
    def journal(self) -> Journal:
        """The history of all notebooks of this user on this host."""
        return self.hub.journal

    @property
    def artifacts(self) -> ArtifactStore:
        """Output that was too long to keep in memory, and pictures."""
        return self.hub.artifacts

    @property
    def kernels(self) -> Kernels:
        """The kernels that run in this process."""
        if self._kernels is None:
            from cellwright.workspace.kernels import Kernels

            self._kernels = Kernels(self)
        return self._kernels

    def open(self, path: str | os.PathLike[str]) -> Book:
        """A notebook by path; it need not exist yet, since an edit may create it."""
        place = resolve(os.fspath(path), self.cwd)
        return Book(self, place, os.fspath(path), confine(place, self.root))

    def create(self, path: str | os.PathLike[str], *, kernel: str | None = None) -> dict[str, Any]:
        """Make a notebook with no cells; refuses to touch a file that is there."""
        self.require("edit", "create a notebook")
        book = self.open(path)
        if os.path.lexists(book.path):
            raise AlreadyExists(book.name)
        metadata: dict[str, Any] = {}
        if kernel is not None:
            metadata = {"kernelspec": {"name": kernel, "display_name": kernel}}
        edit = {"op": "set_metadata", "metadata": metadata}
        return book.edit([edit], create=True, label="create", kind="create")

    def list(self) -> list[dict[str, Any]]:
        """The notebooks below the root, or below the working folder, in order of their path."""
        top = self.root or self.cwd
        found = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            for name in sorted(files):
                if name.endswith(".ipynb") and not name.startswith("."):
                    path = os.path.join(folder, name)  # noqa: PTH118  # as os.walk has it
                    # Not a link that leads nowhere, nor one that leads out.
                    if os.path.isfile(path) and leads_inside(path, self.root):  # noqa: PTH113
                        size = os.path.getsize(path)  # noqa: PTH202
                        found.append({"path": os.path.relpath(path, self.cwd), "size": size})
        return found

    def eval(
        self,
        cells: Iterable[EvalCell | Mapping[str, Any] | str],
        *,
        session: str = "default",
        cwd: str | None = None,
        kernel: str | None = None,
        runner: bool = False,
        server: str | None = None,
        server_token: str | None = None,
        kernel_id: str | None = None,
        per_call: bool = False,
        timeout: float | None = None,
        answers: Sequence[str] = (),
        ask: Ask | None = None,
        keep_going: bool = False,
        progress: Progress | None = None,
        detach: float | None = None,
    ) -> dict[str, Any]:
        """Run cells of code that belong to no notebook, and stop at the first that fails.

        Args:
            cells: code, or `{code, title, language, reset, timeout}`.
            session: cells of one session and folder see what earlier ones defined.
            cwd: the folder they run in; the workspace's by default.
            kernel: a kernelspec, interpreter or environment; by default the plain Python runner.
            runner: the runner, in the interpreter that `kernel` names.
            server: the address of a Jupyter server whose kernel runs the cells.
            server_token: its token, if the address does not hold it.
            kernel_id: a kernel of the server to attach to; it is left running.
            per_call: use a kernel of its own, which ends with this call.
            timeout: seconds for each cell that has none of its own; 0 is no limit.
            answers: lines for `input()`, in order.
            ask: somebody who can be asked for more of them.
            keep_going: run the cells after one that failed, too.
            progress: gets `{"run"}` first, then `{"cell", "status"}` and `{"cell", "text"}`.
            detach: answer after so many seconds, even if the run, whose id is in the answer,
                goes on; `attach` follows it.
        """
        self.require("run", "run code")
        return self.kernels.eval(
            cells,
            session=session,
            cwd=cwd,
            kernel=kernel,
            runner=runner,
            server=server,
            server_token=server_token,
            kernel_id=kernel_id,
            per_call=per_call,
            timeout=timeout,
            answers=answers,
            ask=ask,
            keep_going=keep_going,
            progress=progress,
            detach=detach,
        )

    def runs(self) -> Rows:
        """What runs, and what ran lately, the newest first."""
        self.require("read", "list runs")
        return self.kernels.runs()

    def attach(
        self, run: str, *, progress: Progress | None = None, wait: float | None = None
    ) -> dict[str, Any]:
        """Follow a run from its beginning to its end, or for `wait` seconds.

        The answer has its state, and its `answer` if it is `done`.
        """
        self.require("read", "follow a run")
        return self.kernels.attach(run, progress=progress, wait=wait)

    def cancel(self, run: str) -> dict[str, Any]:
        """Stop a run; the cell that runs is interrupted, what it printed is kept."""
        self.require("run", "stop a run")
        return self.kernels.cancel(run)

    def watch(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        progress: Progress,
        wait: float | None = None,
        until: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """Tell what happens to a notebook, or to all, for `wait` seconds or until interrupted.

        `progress` gets `{"event", "notebook", "when", ...}`: `changed` by somebody here (`actor`,
        `kind`, `revision`, `cells`), `cell` when one begins or ends (`status`), `run_ended`, and
        for a notebook that was named `outside`, when its file was changed without us. `until`
        is asked now and then whether that is enough.
        """
        from cellwright.workspace.watching import watch

        self.require("read", "watch notebooks")
        real = None if path is None else self.open(path).real
        return {"events": watch(self.hub, real, progress, wait, until, root=self.root)}

    def sessions(self) -> Rows:
        """The sessions of this process."""
        return self.kernels.sessions()

    def kernel(self, action: str, session: str, cwd: str | None = None) -> dict[str, Any]:
        """Look at a session's kernel (status, variables), or interrupt, restart, end it."""
        if action not in ("status", "variables"):
            self.require("run", f"{action} a kernel")
        return self.kernels.act(action, session, cwd)

    def kernel_specs(self) -> Rows:
        """The kernels that can be started here, and which one is meant by default."""
        from cellwright.workspace.specs import describe_specs

        return describe_specs(self.cwd, self.environ, self.settings)

    def artifact(self, ref: str, offset: int = 0, limit: int = 65536) -> dict[str, Any]:
        """A part of an artifact: text as it is, anything else as base64."""
        from cellwright.workspace.artifacts import read_part

        return read_part(self.artifacts, ref, offset, limit)

    def require(self, effect: Effect, what: str) -> None:
        """Raise `ModeForbids` unless this caller's mode allows an effect."""
        if effect in ALLOWED[self.mode]:
            return
        if effect == self.mode == "edit" and self.settings.edit_mode_edits:
            return
        raise ModeForbids(what, self.mode, "agent")
