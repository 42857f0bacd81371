"""Take the events of one cell of `eval`, and make an `Execution` of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from cellwright.kernel.environment import explain_withheld
from cellwright.kernel.session import STDIN_FAILED
from cellwright.outputs.charts.reading import Chart
from cellwright.outputs.events import (
    ANSWERED_ERROR,
    ClearEvent,
    DisplayEvent,
    ErrorEvent,
    StreamEvent,
    bound_error,
)
from cellwright.outputs.mime import (
    MimeImage,
    MimeJson,
    StatusReport,
    UnreadPart,
    choose_parts,
    latest_statuses,
)
from cellwright.outputs.sink import OutputSink
from cellwright.outputs.sizes import human_size
from cellwright.workspace.runs.execution import CellError, Execution, ExitView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cellwright.config.settings import Settings
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.session import CellOutcome
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.mime import MimePart
    from cellwright.outputs.sink import OutputSummary

_MOST_PARTS = 200


@dataclass
class EvalRecorder:
    """Takes the events of one cell of `eval` and makes an `Execution` of them.

    `on_text` gets every piece of text as it comes, neither sanitised nor bounded.
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
        """Note that the kernel died and the cell is run once more; its output so far stays."""
        self._say("\n[The kernel died; the cell is run again in a new one.]\n")

    def finish(self, ran: CellOutcome, title: str = "", notes: Sequence[str] = ()) -> Execution:
        """Return what became of the cell, with these notes after its own."""
        statuses = latest_statuses(part for part in self._parts if isinstance(part, StatusReport))
        parts = [part for part in self._parts if not isinstance(part, StatusReport)]
        outcome, output = ran.outcome, self._sink.dump()
        error, ended = outcome.error, outcome.exit
        return Execution(
            outcome.status,
            title=title,
            seconds=outcome.seconds,
            count=outcome.execution_count,
            text=output.text,
            truncated=output.truncated,
            total_lines=output.total_lines,
            total_bytes=output.total_bytes,
            artifact=output.artifact,
            json=[part.value for part in parts if isinstance(part, MimeJson)],
            images=[
                {"mime": part.mime, "bytes": len(part.data), "artifact": self._keep(part)}
                for part in parts
                if isinstance(part, MimeImage)
            ],
            events=[dict(part.value) for part in statuses],
            error=_describe_error(error) if error else None,
            exit=ExitView(ended.code, ended.signal, ended.out_of_memory) if ended else None,
            state_kept=outcome.state_kept,
            replaced=ran.replaced,
            retried=ran.retried,
            notes=[*self._list_notes(ran), *_describe_kept(output), *notes],
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
            if isinstance(part, (MimeImage, UnreadPart, Chart)) and chosen.text is None:
                self._say(f"{part}\n")
        if sum(isinstance(part, StatusReport) for part in self._parts) > _MOST_PARTS:
            others = [part for part in self._parts if not isinstance(part, StatusReport)]
            kept = latest_statuses(part for part in self._parts if isinstance(part, StatusReport))
            self._parts = [*others, *kept[-_MOST_PARTS:]]

    def _clear(self) -> None:
        self._clears_next = False
        self._sink.clear()
        self._parts = [part for part in self._parts if isinstance(part, StatusReport)]

    def _keep(self, part: MimeImage) -> str | None:
        if self.store is None:
            return None
        from cellwright.errors import ArtifactsUnavailable

        try:
            return self.store.put(part.data, mime=part.mime, name="image").id
        except ArtifactsUnavailable:
            return None

    def _list_notes(self, ran: CellOutcome) -> list[str]:
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
            if ran.stopped_by:
                notes.append(
                    f"The kernel was {ran.stopped_by} while the cell ran; its variables are lost"
                )
            elif outcome.state_kept:
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
            notes += filter(None, [explain_withheld(self.withheld, said)])
        notes += [f"Part of the output was missed: {reason}" for reason in outcome.missed]
        if self._dropped:
            notes.append(f"{self._dropped} displays beyond {_MOST_PARTS} were dropped")
        return notes


def _describe_error(error: ErrorEvent) -> CellError:
    short = bound_error(error, ANSWERED_ERROR)
    return CellError(short.ename, short.evalue)


def _describe_kept(output: OutputSummary) -> list[str]:
    """Say how much of a flood the artifact has, if it has not all."""
    if not output.artifact_truncated:
        return []
    sizes = f"{human_size(output.artifact_bytes)} of {human_size(output.total_bytes)}"
    return [f"The artifact has the beginning and the end of the output, {sizes}"]
