"""Who calls a verb: from where, with which rights, on which shared resources."""

from __future__ import annotations

import os
from _thread import allocate_lock  # `threading` would cost every command its import

from cellwright.errors import InvalidEdit, ModeForbids
from cellwright.workspace.paths import find_folder, leads_inside, real_path, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import ClassVar

    from cellwright.config.settings import Settings
    from cellwright.journal import Journal
    from cellwright.workspace.api.requests import Effect, Mode, PathLike
    from cellwright.workspace.hub import Hub
    from cellwright.workspace.notebook import OpenNotebook

ALLOWED: dict[str, frozenset[str]] = {
    "ask": frozenset({"read"}),
    "edit": frozenset({"read"}),
    "agent": frozenset({"read", "edit", "run"}),
}
"""Which mode allows which effect; by default `edit` only proposes, and a setting changes that."""

_DOCUMENTS = (".ipynb", ".md", ".markdown", ".rst", ".txt", ".csv", ".tsv", ".tex", ".bib")
# Documents by their suffix that installers, build tools and agents obey.
_OBEYED = ("requirements", "constraints", "cmakelists", "agents.", "claude.", "gemini.", "skill.")


DEFAULT_SESSION = "default"
_COMMAND_LINE = "cli:"
SERVER_TOKEN = "CELLWRIGHT_SERVER_TOKEN"  # noqa: S105  # a name


class Caller:
    """One caller of verbs; see `Workspace` for the arguments.

    `hub` is shared with other callers of the process if it was given, and made when it is first
    needed otherwise. `owner` keeps a notebook's kernel alive; the actor by default. `client` is
    for whom sessions of `eval` are kept. `withheld` are names of secrets that a caller in another
    process has left out of `environ`; `server_token` is the one of them that is for us.
    """

    extend_hub: ClassVar[Callable[[Hub], Awaitable[object]] | None] = None
    """Awaited with every new hub before its first kernel starts; the composition root sets it."""

    def __init__(
        self,
        root: PathLike | None = None,
        *,
        cwd: str | None = None,
        mode: Mode = "agent",
        actor: str = "python:caller",
        environ: Mapping[str, str] | None = None,
        journal: Journal | None = None,
        hub: Hub | None = None,
        owner: str | None = None,
        withheld: Sequence[str] | None = None,
        server_token: str | None = None,
    ) -> None:
        if mode not in ALLOWED:
            raise InvalidEdit(f"Unknown mode {mode!r}", hint="One of ask, edit, agent")
        self.cwd = cwd or find_folder()
        self.root = None if root is None else resolve(os.fspath(root), self.cwd)
        self.mode = mode
        self.actor = actor
        self.owner: str | None = owner or actor
        # Every command is a connection of its own, and continues where the last one ended.
        self.client = actor if actor.startswith(_COMMAND_LINE) else self.owner
        self._environ = environ
        self._withheld = withheld
        self._kernel_environment: Mapping[str, str] | None = None  # once known: it stays the same
        self._server_token = server_token
        self._settings: Settings | None = None
        self._journal = journal
        self._hub = hub
        self._owns_hub = hub is None
        self._lock = allocate_lock()

    @property
    def origin(self) -> str:
        """Whose code runs, on the record of what belongs to no notebook: `root:` and the folder."""
        return "" if self.root is None else f"root:{real_path(self.root)}"

    def knows(self, origin: str) -> bool:
        """Whether something of that origin exists for this caller; without a root, all does.

        What a notebook made belongs to the notebook, and the rest to the root that made it.
        """
        if self.root is None:
            return True
        kind, _, place = origin.partition(":")
        if kind == "notebook":
            return os.path.isabs(place) and leads_inside(place, self.root)  # noqa: PTH117
        return origin == self.origin

    @property
    def environ(self) -> Mapping[str, str]:
        """The caller's variables; kernels get them, without secrets."""
        return os.environ if self._environ is None else self._environ

    @property
    def server_token(self) -> str | None:
        """The token of the Jupyter server that the user has chosen."""
        return self._server_token or self.environ.get(SERVER_TOKEN)

    def build_environment(
        self, passed: Sequence[str] = ()
    ) -> tuple[Mapping[str, str], tuple[str, ...]]:
        """Build the variables that kernels get: all but secrets, and the names of those.

        `passed` are secrets that they may have, besides those in the settings.
        """
        from cellwright.kernel.environment import build_kernel_environment

        if self._withheld is not None:  # the caller knew what may be passed
            if self._kernel_environment is None:
                self._kernel_environment = build_kernel_environment(self.environ, ["*"])[0]
            return self._kernel_environment, tuple(self._withheld)
        return build_kernel_environment(self.environ, [*passed, *self.settings.pass_variables])

    @property
    def settings(self) -> Settings:
        """The settings of the working folder."""
        if self._settings is None:
            from cellwright.config.loading import load

            self._settings = load(self.cwd, self.environ)
        return self._settings

    @property
    def hub(self) -> Hub:
        """The kernels, runs and history of this process."""
        if self._hub is None:
            from cellwright.workspace.hub import Hub

            with self._lock:  # two threads with a hub each would not see each other's runs
                if self._hub is None:
                    self._hub = Hub(
                        self.settings, journal=self._journal, extend=type(self).extend_hub
                    )
        return self._hub

    @property
    def journal(self) -> Journal:
        """The history of all notebooks of this user on this host."""
        return self.hub.journal

    def open(self, path: PathLike) -> OpenNotebook:
        """Return a notebook by path, in the place where it lives now."""
        from cellwright.workspace.notebook import OpenNotebook

        return OpenNotebook(self, os.fspath(path))

    def name_session(self, session: str) -> str:
        """Return the name that a session has for all: `default` is each client's own.

        Every other name is shared on purpose. The commands of a folder follow each other, and a
        process with kernels of its own shares them with no one.
        """
        if session != DEFAULT_SESSION or self._owns_hub or self.actor.startswith(_COMMAND_LINE):
            return session
        return f"{session}@{self.client}"

    def require(self, effect: Effect, what: str) -> None:
        """Raise `ModeForbids` unless the mode allows an effect."""
        if effect in ALLOWED[self.mode]:
            return
        if effect == self.mode == "edit" and self.settings.edit_mode_edits:
            return
        raise ModeForbids(what, self.mode, "agent")

    def require_harmless(self, name: str, real: str) -> None:
        """Raise `ModeForbids` for files that other programs obey, unless the mode is `agent`.

        Those are all in folders or with names that begin with a dot, all that may be executed,
        and all but notebooks and plain documents.
        """
        if self.mode == "agent":
            return
        top = real_path(self.root or self.cwd)
        inside = real.removeprefix(top.rstrip("/") + "/")
        file = inside.rpartition("/")[2]
        try:
            is_executable = bool(os.stat(real).st_mode & 0o111)  # noqa: PTH116  # no pathlib here
        except OSError:
            is_executable = False
        if (
            is_executable
            or any(part.startswith(".") for part in inside.split("/"))
            or not file.lower().endswith(_DOCUMENTS)
            or file.lower().startswith(_OBEYED)
        ):
            raise ModeForbids(f"write {name}, which other programs may obey", self.mode, "agent")

    def close(self) -> None:
        """End the kernels that were started here, and let go of the journal."""
        if self._hub is not None and self._owns_hub:
            self._hub.close()
            self._hub = None
