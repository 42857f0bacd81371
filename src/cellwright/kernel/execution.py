"""`Execution`: what became of a cell that was evaluated, and the recorder that finds out."""

from __future__ import annotations

from dataclasses import dataclass, field

from cellwright.errors import (
    CellFailed,
    ExecutionCancelled,
    ExecutionTimedOut,
    KernelDied,
)
from cellwright.kernel.environment import about_withheld
from cellwright.kernel.running import STDIN_FAILED
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent
from cellwright.outputs.mime import (
    MimeImage,
    MimeJson,
    StatusReport,
    UnreadPart,
    choose_parts,
    latest_statuses,
)
from cellwright.outputs.sink import OutputSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from cellwright.config.settings import Settings
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.running import Outcome
    from cellwright.kernel.session import Ran
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.mime import MimePart
    from cellwright.outputs.sink import OutputSummary

_MOST_PARTS = 200


@dataclass(frozen=True, slots=True)
class Execution:
    """A cell that was evaluated.

    `output` holds its text, bounded, and says how much there was; `parts` are the structured
    displays beside it. `notes` say in sentences what a caller has to know about the kernel.
    """

    outcome: Outcome
    output: OutputSummary
    parts: tuple[MimePart, ...] = ()
    artifacts: tuple[str | None, ...] = ()
    replaced: bool = False
    retried: bool = False
    notes: tuple[str, ...] = ()
    timeout: float = 0

    @property
    def status(self) -> str:
        """One of `ok`, `error`, `timed_out`, `cancelled`, `died`."""
        return self.outcome.status

    def raise_for_status(self) -> None:
        """Raise what ended the cell, unless it ended well.

        Raises:
            CellFailed, ExecutionTimedOut, ExecutionCancelled, KernelDied: as `status` says.
        """
        if self.status == "timed_out":
            raise ExecutionTimedOut(self.timeout)
        if self.status == "cancelled":
            raise ExecutionCancelled
        if self.status == "died":
            raise KernelDied(str(self.outcome.exit))
        if self.status == "error":
            error = self.outcome.error
            raise CellFailed(*((error.ename, error.evalue) if error else ("stdin", STDIN_FAILED)))

    def to_json(self) -> dict[str, Any]:
        """Everything, as it goes over a wire; pictures by the id of their artifact."""
        error, ended = self.outcome.error, self.outcome.exit
        images = [
            {"mime": part.mime, "bytes": len(part.data), "artifact": artifact}
            for part, artifact in zip(self.parts, self.artifacts, strict=True)
            if isinstance(part, MimeImage)
        ]
        return {
            "status": self.status,
            "execution_count": self.outcome.execution_count,
            "seconds": round(self.outcome.seconds, 3),
            "text": self.output.text,
            "truncated": self.output.truncated,
            "total_lines": self.output.total_lines,
            "total_bytes": self.output.total_bytes,
            "artifact": self.output.artifact,
            "json": [part.value for part in self.parts if isinstance(part, MimeJson)],
            "images": images,
            "events": [dict(part.value) for part in self.parts if isinstance(part, StatusReport)],
            "error": error and {"ename": error.ename, "evalue": error.evalue},
            "exit": ended
            and {"code": ended.code, "signal": ended.signal, "out_of_memory": ended.out_of_memory},
            "state_kept": self.outcome.state_kept,
            "replaced": self.replaced,
            "retried": self.retried,
            "notes": list(self.notes),
        }


@dataclass
class Recorder:
    """Takes the events of one cell and makes an `Execution` of them.

    `on_text` gets every piece of text as it comes, not made harmless and not bounded.
    """

    settings: Settings
    store: ArtifactStore | None = None
    on_text: Callable[[str], object] | None = None
    withheld: Collection[str] = ()
    _parts: list[MimePart] = field(default_factory=list)
    _dropped: int = 0
    _clears_next: bool = False

    def __post_init__(self) -> None:
        spill = None
        if self.store is not None:
            store = self.store
            spill = lambda: store.create(mime="text/plain", name="output")  # noqa: E731
        self._sink = OutputSink(
            self.settings.output_bytes_kept, self.settings.output_lines_kept, spill=spill
        )

    def feed(self, event: KernelEvent) -> None:
        """Take the next event."""
        if isinstance(event, StreamEvent):
            self._say(event.text)
        elif isinstance(event, DisplayEvent):
            self._show(event)
        elif isinstance(event, ErrorEvent):
            lines = event.traceback or (f"{event.ename}: {event.evalue}",)
            self._say("\n".join(lines) + "\n")
        elif isinstance(event, ClearEvent):
            self._clears_next = True
            if not event.wait:
                self._clear()

    def begin_again(self) -> None:
        """The kernel died, and the cell is run once more; what it said so far stays."""
        self._say("\n[The kernel died; the cell is run again in a new one.]\n")

    def finish(self, ran: Ran, timeout: float = 0) -> Execution:
        """Sum up."""
        statuses = latest_statuses(part for part in self._parts if isinstance(part, StatusReport))
        parts = [part for part in self._parts if not isinstance(part, StatusReport)]
        return Execution(
            ran.outcome,
            self._sink.dump(),
            (*parts, *statuses),
            (*map(self._keep, parts), *(None for _ in statuses)),
            replaced=ran.replaced,
            retried=ran.retried,
            notes=tuple(self._notes(ran)),
            timeout=timeout,
        )

    def _say(self, text: str) -> None:
        if self._clears_next:
            self._clear()
        self._sink.feed(text)
        if self.on_text is not None:
            self.on_text(text)

    def _show(self, event: DisplayEvent) -> None:
        chosen = choose_parts(event.data)
        if chosen.text is not None and chosen.text.text:
            self._say(chosen.text.text.removesuffix("\n") + "\n")
        elif self._clears_next:
            self._clear()
        for part in chosen.parts:
            if len(self._parts) >= _MOST_PARTS and not isinstance(part, StatusReport):
                self._dropped += 1
                continue
            self._parts.append(part)
            if isinstance(part, (MimeImage, UnreadPart)) and chosen.text is None:
                self._say(f"{part}\n")
        if sum(isinstance(part, StatusReport) for part in self._parts) > _MOST_PARTS:
            others = [part for part in self._parts if not isinstance(part, StatusReport)]
            kept = latest_statuses(part for part in self._parts if isinstance(part, StatusReport))
            self._parts = [*others, *kept[-_MOST_PARTS:]]

    def _clear(self) -> None:
        self._clears_next = False
        self._sink.clear()
        self._parts = [part for part in self._parts if isinstance(part, StatusReport)]

    def _keep(self, part: MimePart) -> str | None:
        if self.store is None or not isinstance(part, MimeImage):
            return None
        from cellwright.errors import ArtifactsUnavailable

        try:
            return self.store.put(part.data, mime=part.mime, name="image").id
        except ArtifactsUnavailable:
            return None

    def _notes(self, ran: Ran) -> list[str]:
        outcome = ran.outcome
        notes = []
        if ran.replaced:
            notes.append(
                "The session's kernel had died; this cell ran in a new one, without what was "
                "defined before"
            )
        if ran.retried:
            notes.append(
                "The kernel died under this cell, which was run once more in a new one: what was "
                "defined before is lost, and what the cell did outside may have happened twice"
            )
        if outcome.status == "died":
            notes.append(f"The kernel died, {outcome.exit}; its variables are lost")
        elif outcome.status in ("timed_out", "cancelled"):
            if outcome.state_kept:
                notes.append("The kernel was interrupted; its variables are kept")
            elif outcome.seconds:
                notes.append(
                    f"The kernel did not obey the interrupt within "
                    f"{self.settings.interrupt_grace:g} s and was ended; its variables are lost"
                )
        if outcome.stdin_refused:
            notes.append(STDIN_FAILED)
        if outcome.error is not None:
            said = f"{outcome.error.ename} {outcome.error.evalue}"
            notes += filter(None, [about_withheld(self.withheld, said)])
        notes += [f"Part of the output was missed: {reason}" for reason in outcome.missed]
        if self._dropped:
            notes.append(f"{self._dropped} displays beyond {_MOST_PARTS} were dropped")
        return notes
