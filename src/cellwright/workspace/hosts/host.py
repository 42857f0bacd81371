"""The seam: what a verb may ask of the place where a notebook lives."""

from __future__ import annotations

from typing import Protocol

from cellwright.workspace.api.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cellwright.document.change import Change, State
    from cellwright.document.notebook import Notebook

    Make = Callable[[Notebook], Change]


class SaveHooks:
    """What a host calls on the way of a change to where the notebook lives.

    Args:
        saving: gets the change before it is stored. It may be called in another thread, while the
            disk writes.
        saved: the change is stored.
        failed: it is not, and the notebook is as it was; `saving` may not have been called.
    """

    __slots__ = ("failed", "saved", "saving")

    def __init__(
        self,
        saving: Callable[[Change], object] | None = None,
        saved: Callable[[], object] = lambda: None,
        failed: Callable[[], object] = lambda: None,
    ) -> None:
        self.saving = saving
        self.saved = saved
        self.failed = failed

    def announce(self, change: Change) -> None:
        """Call `saving`, where nothing can be done meanwhile."""
        if self.saving is not None:
            self.saving(change)


NO_HOOKS = SaveHooks()


class Presence(Value):
    """Where a person is in the notebook, by cell handles; nowhere if it is not open.

    `mode` is `edit` while the cursor is in a cell, otherwise `command`. `focused` says that the
    person is there right now, `dirty` that the editor has not saved its last changes. `seen` is
    the clock time, in seconds, when the person last went there.
    """

    OPTIONAL = frozenset({"seen"})

    active: str | None = None
    selected: tuple[str, ...] = ()
    mode: str = "command"
    focused: bool = False
    dirty: bool = False
    seen: float | None = None


class KernelAddress(Value):
    """A kernel that another program runs: a Jupyter server's, by its id.

    `life` is what its process calls itself; empty if it has run nothing since it was started, and
    None if that is not known.
    """

    server: str
    kernel_id: str
    token: str | None = None
    life: str | None = None


class NotebookHost(Protocol):
    """One notebook, wherever it lives.

    The methods block. Errors are raised as a `CellwrightError`; then nothing was changed, unless
    the error says otherwise.
    """

    landing_interval: float | None
    """Seconds between two landings of a cell that runs; None is as the settings say."""

    keeps_widgets: bool
    """Whether an editor has the widgets of the kernel, and shows and saves them itself."""

    @property
    def kind(self) -> str:
        """What answers call it: `file`, `memory`, `tab`."""
        ...

    def exists(self) -> bool:
        """Whether there is a notebook."""
        ...

    def read(self) -> Notebook:
        """Return the notebook as it is now.

        Raises:
            NotebookNotFound: there is none.
        """
        ...

    def read_bytes(self) -> bytes:
        """Return the notebook's bytes, also if they are not a valid notebook."""
        ...

    def signature(self) -> str | None:
        """Return what changes whenever the stored notebook does; None if there is none."""
        ...

    def change(
        self,
        make: Make,
        *,
        create: bool = False,
        hooks: SaveHooks = NO_HOOKS,
    ) -> Change:
        """Let `make` change the notebook, store it, and read it back, as one step.

        `make` may be called again if another program changes the notebook meanwhile. After each
        call of `make`, the `hooks` are called before any other writer gets a turn.
        With `create`, a notebook that does not exist begins empty.
        """
        ...

    def begin_landing(self, start: State) -> Landing:
        """Begin to receive the outputs of a run; `start` is what the notebook held then."""
        ...

    def save(self) -> None:
        """Store what was changed, if `change` did not do so already."""
        ...

    def back_up(self, state: State) -> str:
        """Store a copy of a state beside the notebook, and return its name."""
        ...

    def presence(self) -> Presence:
        """Return where a person is in the notebook."""
        ...

    def kernel(self) -> KernelAddress | None:
        """Return the kernel that the notebook has already; None if it gets one of ours."""
        ...

    def list_running(self) -> dict[str, str]:
        """Return the cells that a person runs, by handle: `running` or `pending`."""
        ...

    def own(self) -> None:
        """Claim the notebook for this process's kernel.

        Raises:
            OwnedElsewhere: another process runs it.
        """
        ...

    def release(self) -> None:
        """Give up the claim."""
        ...


class ClosedHost:
    """What a host has where no editor has the notebook open, and no other process can run it."""

    landing_interval: float | None = None
    keeps_widgets = False

    def save(self) -> None:
        """Do nothing: what was changed is stored already."""

    def presence(self) -> Presence:
        """Return that no person has it open, as far as we can tell."""
        return Presence()

    def kernel(self) -> None:
        """Return that it has none of its own."""

    def list_running(self) -> dict[str, str]:
        """Return no cells: what runs here is a run of ours."""
        return {}

    def own(self) -> None:
        """Do nothing: no other process can run it."""

    def release(self) -> None:
        """Do nothing, as `own` did."""


class Landing(Protocol):
    """Where the outputs of one run land; used by one thread at a time.

    `left` is the signature of the notebook after the last landing, `written` what it held then.
    """

    left: str | None
    written: State | None

    def land(
        self,
        make: Make,
        *,
        is_last: bool = True,
        hooks: SaveHooks = NO_HOOKS,
    ) -> None:
        """Let `make` put outputs into the notebook; unless `is_last`, more will follow soon."""
        ...

    @property
    def needs_end(self) -> bool:
        """Whether `end` has anything to do."""
        ...

    def end(self) -> None:
        """Finish: the run is over."""
        ...


def note_written(
    landing: Landing, make: Make, hooks: SaveHooks, find_signature: Callable[[], str | None]
) -> tuple[Make, SaveHooks]:
    """Return `make` and `hooks` that also note in a landing what was written."""
    made: list[State] = []

    def make_and_note(notebook: Notebook) -> Change:
        change = make(notebook)
        made[:] = [change.after]
        return change

    def note_and_tell() -> None:
        landing.left, landing.written = find_signature(), made[0]
        hooks.saved()

    return make_and_note, SaveHooks(hooks.saving, note_and_tell, hooks.failed)
