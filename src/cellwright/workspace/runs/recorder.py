"""Take the events of one cell: as reports while it runs, and of `eval` as an `Execution`."""

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
    RawPiece,
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
    part_size,
)
from cellwright.outputs.sink import OutputSink
from cellwright.outputs.sizes import human_size
from cellwright.workspace.runs.execution import CellError, Execution, ExitView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from cellwright.config.settings import Settings
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.session import CellOutcome
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.mime import MimeChoice, MimePart
    from cellwright.outputs.sink import OutputSummary

_MOST_PARTS = 200
_LARGEST_DISPLAY = 2**21
_LONGEST_TITLE = 200


def find_title(source: str) -> str:
    """Return the first line of a source that says something, for those who watch it run."""
    return next((line.strip() for line in source.split("\n") if line.strip()), "")[:_LONGEST_TITLE]


def describe_stream(event: StreamEvent) -> dict[str, Any]:
    """Describe printed text for those who watch: `text`, and `stream` if it is not stdout."""
    return {"text": event.text, **({} if event.name == "stdout" else {"stream": event.name})}


def describe_display(event: DisplayEvent) -> dict[str, Any]:
    """Describe a display for those who watch: as `text`, and if it is more as `output`, too."""
    return _describe_choice(event, choose_parts(event.data))


def _describe_choice(event: DisplayEvent, chosen: MimeChoice) -> dict[str, Any]:
    text = ""
    if chosen.text is not None and chosen.text.text:
        text = chosen.text.text.removesuffix("\n") + "\n"
    elif chosen.text is None:
        named = (part for part in chosen.parts if isinstance(part, (MimeImage, UnreadPart, Chart)))
        text = "".join(f"{part}\n" for part in named)
    facts: dict[str, Any] = {"text": text}
    if set(event.data) - {"text/plain"} and measure_display(event.data) <= _LARGEST_DISPLAY:
        kind = "execute_result" if event.is_result else "display_data"
        facts["output"] = {"output_type": kind, "data": dict(event.data), "metadata": {}}
    return facts


def measure_display(data: Mapping[str, Any]) -> int:
    """The characters of a display, as far as they are text; what is JSON is small or measured."""
    return sum(part_size(str(mime), value) for mime, value in data.items())


@dataclass
class EvalRecorder:
    """Takes the events of one cell of `eval` and makes an `Execution` of them.

    `on_report` gets what `describe_stream` and `describe_display` say of every piece as it comes,
    neither sanitised nor bounded.
    """

    settings: Settings
    store: ArtifactStore | None = None
    on_report: Callable[..., object] | None = None
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
            self._say(**describe_stream(event))
        elif isinstance(event, DisplayEvent):
            self._show(event)
        elif isinstance(event, RawPiece):
            self._sink.keep_raw(event.data)
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

    def _say(self, text: str, **facts: Any) -> None:
        if self._clears_next:
            self._clear()
        self._sink.feed(text)
        if self.on_report is not None and (text or facts):
            self.on_report(text=text, **facts)

    def _show(self, event: DisplayEvent) -> None:
        chosen = choose_parts(event.data)
        self._say(**_describe_choice(event, chosen))
        for part in chosen.parts:
            if len(self._parts) >= _MOST_PARTS and not isinstance(part, StatusReport):
                self._dropped += 1
                continue
            self._parts.append(part)
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
    """Say how much of a flood the artifact has, if it has not all, or why there is none."""
    if output.warning is not None and output.notice is not None:
        return [output.notice]
    if not output.artifact_truncated:
        return []
    sizes = f"{human_size(output.artifact_bytes)} of {human_size(output.total_bytes)}"
    return [f"The artifact has the beginning and the end of the output, {sizes}"]
