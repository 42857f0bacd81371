"""What holds for every output, however it comes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellwright.outputs.collector import Collector
from cellwright.outputs.describe import NOTICE_CHARACTERS, describe
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, StreamEvent
from cellwright.outputs.html import html_to_text
from cellwright.outputs.mime import choose_parts
from cellwright.outputs.sanitize import Sanitizer, unsafe
from cellwright.outputs.sink import OutputSink

if TYPE_CHECKING:
    from cellwright.outputs.events import OutputEvent
    from cellwright.outputs.sink import OutputSummary

# Many examples of long texts take a while with `--all`.
pytestmark = pytest.mark.timeout(300)

# -- texts that programs print, and how they are cut -----------------------------------------------

WORDS = st.sampled_from(
    [
        *("\x1b[31m", "\x1b[0m", "\x1b[2K", "\x1b[K", "\x1b]0;t\x07", "\x1b]8;;u\x1b\\", "\x1b"),
        *("\x1b[", "\x1b]", "\x1bP", "\x9b", "\x9d", "\x9c", "\x07", "\x1b\\", "\x00", "\x01"),
        *("\r", "\n", "\r\n", "\b", "\b\b", "\t", "0", "12;", "m", "K", "é", "東", "👍", "👩"),
        *("\u200d", "\ufe0f", "\u202e", "\u0301" * 3, "\U0001f3f4", "\U000e0067", "\U000e007f"),
        *("\ud800", "\u0645", "\u200c", "word", "x" * 30, "line\n" * 3, "\x1b]0;" + "y" * 5000),
    ]
)
TEXTS = st.lists(WORDS | st.text(max_size=5), max_size=40).map("".join)
MODES = st.sampled_from(["tail", "head_tail"])


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(TEXTS)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    return text, pieces


def run(pieces: list[str], **options: Any) -> OutputSummary:
    sink = OutputSink(**options)
    for piece in pieces:
        sink.feed(piece)
    return sink.dump()


def clean(*pieces: str, keep_rewrites: bool = False) -> str:
    stream = Sanitizer(keep_rewrites=keep_rewrites)
    return "".join([*map(stream.feed, pieces), stream.finish()])


def last_states(text: str) -> str:
    """The lines of a printed text in their last state; slow and simple."""
    lines = []
    for line in clean(text, keep_rewrites=True).split("\n"):
        shown: list[str] = []
        returned = False
        for sign in line:
            if sign == "\r":
                returned = True
                continue
            if sign == "\x00":
                shown = [] if returned else shown
                returned = returned and bool(shown)
                continue
            if returned or sign == "\x01":
                shown, returned = [], False
            if sign == "\b":
                shown = shown[:-1]
            elif sign != "\x01":
                shown.append(sign)
        lines.append("".join(shown))
    return "\n".join(lines)


def lines_of(text: str) -> int:
    return text.count("\n") + bool(text and not text.endswith("\n"))


# -- sanitising ------------------------------------------------------------------------------------


@given(cut_texts())
def test_it_does_not_matter_how_a_text_is_cut_to_be_sanitised(cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    assert clean(*pieces) == clean(text)
    assert clean(*pieces, keep_rewrites=True) == clean(text, keep_rewrites=True)


@given(TEXTS | st.text(st.characters(exclude_categories=())))
def test_nothing_unsafe_is_ever_left(text: str) -> None:
    seen = clean(text)
    assert unsafe.search(seen.replace("\u200c", "")) is None
    assert clean(seen) == seen


# -- the sink --------------------------------------------------------------------------------------


@given(cut_texts(), st.integers(1, 60), st.integers(1, 6), MODES)
def test_it_does_not_matter_how_a_text_comes_into_the_sink(
    cut: tuple[str, list[str]], kept_bytes: int, kept_lines: int, mode: str
) -> None:
    text, pieces = cut
    options = {"kept_bytes": kept_bytes, "kept_lines": kept_lines, "mode": mode}
    assert run(pieces, **options) == run([text], **options)


@given(TEXTS)
def test_a_sink_with_room_gives_every_line_in_its_last_state(text: str) -> None:
    summary = run([text], kept_bytes=10**6, kept_lines=10**6)
    assert summary.text == last_states(text)
    assert not summary.truncated


@given(TEXTS, st.integers(1, 200), st.integers(1, 6), MODES)
def test_what_is_kept_are_the_ends_of_the_whole_with_exact_totals(
    text: str, kept_bytes: int, kept_lines: int, mode: str
) -> None:
    # Backspaces reach back only as far as a line is kept.
    text = text.replace("\b", "")
    whole = run([text], kept_bytes=10**6, kept_lines=10**6).text
    summary = run([text], kept_bytes=kept_bytes, kept_lines=kept_lines, mode=mode)
    assert summary.total_bytes == len(whole.encode())
    assert summary.total_lines == lines_of(whole)
    assert summary.raw_bytes == len(text.encode("utf-8", "backslashreplace"))
    assert whole.endswith(summary.tail)
    assert whole.startswith(summary.head)
    assert summary.kept_bytes == len((summary.head + summary.tail).encode()) <= kept_bytes
    assert summary.kept_lines <= kept_lines
    fits = len(whole.encode()) <= kept_bytes and lines_of(whole) <= kept_lines
    assert summary.truncated is not fits
    if fits:
        assert summary.text == whole
    elif mode == "tail":
        assert summary.text == summary.tail
        assert summary.kept_lines == lines_of(summary.tail)
    assert unsafe.search(summary.text.replace("\u200c", "")) is None


# -- collecting ------------------------------------------------------------------------------------

NAMES = st.sampled_from(["stdout", "stderr"])
IDS = st.none() | st.sampled_from(["a", "b"])
BUNDLES = st.dictionaries(st.sampled_from(["text/plain", "text/html", "x/y"]), st.text(max_size=3))
EVENTS = st.lists(
    st.builds(StreamEvent, NAMES, st.text(min_size=1, max_size=3))
    | st.builds(DisplayEvent, BUNDLES, BUNDLES, IDS)
    | st.builds(DisplayEvent, BUNDLES, BUNDLES, IDS, is_update=st.just(True))
    | st.builds(
        DisplayEvent,
        BUNDLES,
        BUNDLES,
        IDS,
        is_result=st.just(True),
        execution_count=st.integers(1, 9),
    )
    | st.builds(
        ErrorEvent, st.text(max_size=3), st.text(max_size=3), st.tuples(st.text(max_size=3))
    )
    | st.builds(ClearEvent, st.booleans()),
    max_size=25,
)


def as_jupyter_would(events: list[OutputEvent]) -> list[dict[str, Any]]:
    """The outputs of a cell, written as plainly as can be."""
    outputs: list[tuple[str | None, dict[str, Any]]] = []
    waiting = False
    for event in events:
        if isinstance(event, ClearEvent):
            waiting = event.wait
            if not event.wait:
                outputs = []
            continue
        if isinstance(event, DisplayEvent):  # an update, or the same display once more
            for display_id, output in outputs:
                if display_id is not None and display_id == event.display_id:
                    output.update(data=dict(event.data), metadata=dict(event.metadata))
            if event.is_update:
                continue
        if waiting:
            outputs, waiting = [], False
        new: dict[str, Any]
        if isinstance(event, StreamEvent):
            new = {"output_type": "stream", "name": event.name, "text": event.text}
            if outputs and outputs[-1][1].get("name") == event.name:
                outputs[-1][1]["text"] += event.text
            else:
                outputs.append((None, new))
        elif isinstance(event, ErrorEvent):
            new = {"output_type": "error", "ename": event.ename, "evalue": event.evalue}
            outputs.append((None, {**new, "traceback": list(event.traceback)}))
        else:
            new = {"output_type": "display_data", "data": dict(event.data)}
            new["metadata"] = dict(event.metadata)
            if event.is_result:
                new |= {"output_type": "execute_result", "execution_count": event.execution_count}
            outputs.append((event.display_id, new))
    return [output for _, output in outputs]


@given(EVENTS)
def test_a_cell_keeps_what_jupyter_would_keep(events: list[OutputEvent]) -> None:
    collector = Collector(limit_bytes=10**6)
    for event in events:
        collector.feed(event)
    assert collector.outputs() == as_jupyter_would(events)
    assert collector.finish() == as_jupyter_would(events)


@given(st.lists(st.builds(StreamEvent, NAMES, TEXTS), max_size=15), st.integers(300, 3000))
def test_a_bounded_cell_keeps_the_end_of_what_was_printed(
    events: list[OutputEvent], limit: int
) -> None:
    collector = Collector(limit_bytes=limit)
    for event in events:
        collector.feed(event)
    whole = "".join(output["text"] for output in as_jupyter_would(events))
    outputs = collector.finish()
    has_note = bool(outputs) and "left out of the notebook" in outputs[0]["text"]
    if has_note:
        outputs = outputs[1:]
    kept = "".join(output["text"] for output in outputs)
    assert whole.endswith(kept)
    assert has_note is (kept != whole)
    assert len(kept.encode("utf-8", "surrogatepass")) <= limit + limit // 4


# -- what models see -------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
MIMES = st.sampled_from(
    [
        *("text/plain", "text/html", "text/markdown", "application/json", "image/png"),
        *("image/svg+xml", "application/x-cellwright-status", "application/x-omp-status", "x/⟦"),
    ]
)
OUTPUTS = st.lists(
    st.fixed_dictionaries({"output_type": st.just("stream"), "name": TEXTS, "text": TEXTS})
    | st.fixed_dictionaries(
        {
            "output_type": st.sampled_from(["display_data", "execute_result"]),
            "data": st.dictionaries(MIMES, JSON, max_size=4),
        }
    )
    | st.fixed_dictionaries(
        {
            "output_type": st.just("error"),
            "ename": TEXTS,
            "evalue": TEXTS,
            "traceback": st.lists(TEXTS, max_size=4),
        }
    )
    | st.fixed_dictionaries({"output_type": TEXTS}),
    max_size=8,
)


@given(OUTPUTS, st.integers(0, 400))
def test_a_description_is_harmless_and_within_its_budget(
    outputs: list[dict[str, Any]], budget: int
) -> None:
    found = describe(outputs, budget)
    assert len(found.text) <= 4 * budget + NOTICE_CHARACTERS
    assert unsafe.search(found.text.replace("\u200c", "")) is None
    ours = re.sub(r"⟦[^⟦⟧\n]*⟧", "", found.text)
    assert "⟦" not in ours
    assert "⟧" not in ours


@given(st.dictionaries(MIMES | st.text(max_size=5), JSON, max_size=5))
def test_no_display_is_too_odd_to_be_read(data: dict[str, Any]) -> None:
    chosen = choose_parts(data)
    assert isinstance(chosen.parts, tuple)
    assert chosen.text is None or isinstance(chosen.text.text, str)


TAGS = st.sampled_from(
    [
        "table",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "ul",
        "ol",
        "li",
        "p",
        "div",
        "h1",
        "pre",
        "a",
        "b",
        "br",
        "script",
        "style",
        "svg",
        "caption",
    ]
)
HTML = st.lists(
    TAGS.map("<{}>".format) | TAGS.map("</{}>".format) | TEXTS | st.sampled_from(["<", "&#27;"]),
    max_size=30,
).map("".join)


@given(HTML)
def test_any_html_becomes_harmless_text(html: str) -> None:
    assert unsafe.search(html_to_text(html).replace("\u200c", "")) is None
