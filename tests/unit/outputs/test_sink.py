"""The sink keeps the right part of a stream, with exact numbers about the rest."""

from __future__ import annotations

import pytest

from cellwright.errors import ArtifactsUnavailable
from cellwright.outputs.artifacts import ArtifactStore
from cellwright.outputs.sink import OutputSink, OutputSummary
from tests.unit.outputs.hostile import FORBIDDEN, SEQUENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def sink_of(*pieces: str, **options: object) -> OutputSummary:
    sink = OutputSink(**options)  # type: ignore[arg-type]
    for piece in pieces:
        sink.feed(piece)
    return sink.dump()


def test_a_short_output_is_kept_whole() -> None:
    summary = sink_of("one\ntwo\n", "three")
    assert summary == OutputSummary(
        head="",
        tail="one\ntwo\nthree",
        truncated=False,
        total_lines=3,
        total_bytes=13,
        kept_lines=3,
        kept_bytes=13,
        raw_bytes=13,
    )
    assert summary.text == "one\ntwo\nthree"
    assert summary.notice is None
    assert (summary.elided_lines, summary.elided_bytes) == (0, 0)


def test_nothing_at_all() -> None:
    summary = sink_of()
    assert (summary.text, summary.truncated, summary.total_lines) == ("", False, 0)


def test_the_limits_are_those_of_the_settings() -> None:
    fits = sink_of("x" * 49 + "\n", "y" * (50 * 1024 - 50))
    assert not fits.truncated
    assert sink_of("x" * (50 * 1024 + 1)).truncated
    assert not sink_of("x\n" * 3000).truncated
    over = sink_of("x\n" * 3001)
    assert (over.truncated, over.kept_lines, over.elided_lines) == (True, 3000, 1)


def test_the_end_is_kept_from_the_start_of_a_line() -> None:
    text = "".join(f"line {number:04}\n" for number in range(1000))
    summary = sink_of(text, kept_bytes=105)
    assert summary.text == text[-100:]
    assert (summary.total_lines, summary.kept_lines, summary.elided_lines) == (1000, 10, 990)
    assert (summary.total_bytes, summary.kept_bytes, summary.elided_bytes) == (10_000, 100, 9900)


def test_of_one_long_line_the_end_is_kept() -> None:
    summary = sink_of("x" * 1000 + "end", kept_bytes=10)
    assert summary.text == "xxxxxxxend"
    assert (summary.total_lines, summary.kept_lines, summary.elided_lines) == (1, 1, 0)


def test_lines_are_limited_too() -> None:
    summary = sink_of("a\nb\nc\nd", kept_lines=2)
    assert (summary.text, summary.kept_lines, summary.total_lines) == ("c\nd", 2, 4)
    assert sink_of("a\nb\nc\nd\n", kept_lines=2).text == "c\nd\n"


@pytest.mark.parametrize("kept", range(1, 12))
def test_no_character_is_cut(kept: int) -> None:
    text = "aé東👍" * 50
    for mode in ("tail", "head_tail"):
        summary = sink_of(text, kept_bytes=kept, mode=mode)
        assert text.endswith(summary.tail)
        assert text.startswith(summary.head)
        assert kept - 6 < summary.kept_bytes <= kept or not summary.kept_bytes


def test_both_ends_are_kept_with_a_line_between_them() -> None:
    text = "".join(f"line {number:04}\n" for number in range(1000))
    summary = sink_of(text, kept_bytes=200, mode="head_tail")
    marker = "[… 980 lines, 9,800 bytes left out …]\n"
    assert summary.text == text[:100] + marker + text[-100:]
    assert (summary.kept_lines, summary.kept_bytes) == (20, 200)


def test_both_ends_of_one_long_line() -> None:
    summary = sink_of("start" + "x" * 1000 + "end!!", kept_bytes=10, mode="head_tail")
    assert summary.text == "start\n[… 0 lines, 1,000 bytes left out …]\nend!!"
    assert (summary.total_lines, summary.kept_lines) == (1, 1)


def test_both_ends_when_only_the_lines_are_too_many() -> None:
    summary = sink_of("1\n2\n3\n4\n5\n6\n", kept_lines=4, mode="head_tail")
    assert summary.text == "1\n2\n[… 2 lines, 4 bytes left out …]\n5\n6\n"


def test_the_notice_tells_what_is_missing_and_where_it_is(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    summary = sink_of("line\n" * 10_000, kept_lines=100, spill=store.create)
    assert summary.notice == (
        "Output truncated: 100 of 10,000 lines, 500 B of 50 kB shown;"
        f" all of it: artifact://{summary.artifact}"
    )


# -- lines in their last state -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["  0%\r 50%\r100%\ndone"], "100%\ndone"),
        (["10%", "\r", "20%", "\r", "30%"], "30%"),
        (["a\r", "\nb\r\n", "c"], "a\nb\nc"),
        (["a\r\r\nb"], "a\nb"),
        (["100%\r"], "100%"),
        (["50%\r\x1b[K"], ""),
        (["50%\x1b[2K\rdone"], "done"),
        (["one\x1b[2Ktwo"], "two"),
        (["one\x1b[Ktwo"], "onetwo"),
        (["10%\b\b\b20%"], "20%"),
        (["abc\b", "\b", "x"], "ax"),
        (["a\n\b\bb"], "a\nb"),
        (["é東👍\b\bx"], "éx"),
        (["ab\r\bc"], "c"),
        (["\r\r\rx"], "x"),
        (["\x1b[32mok\x1b[0m\n"], "ok\n"),
    ],
)
def test_lines_are_shown_as_they_were_left(pieces: list[str], text: str) -> None:
    assert sink_of(*pieces).text == text
    assert sink_of("".join(pieces)).text == text
    assert sink_of(*"".join(pieces)).text == text


def test_a_progress_bar_counts_as_one_line() -> None:
    summary = sink_of(*(f"\r{number}%" for number in range(100_000)), "\n", kept_bytes=100)
    assert (summary.text, summary.truncated, summary.total_lines) == ("99999%\n", False, 1)
    assert summary.raw_bytes > 500_000


def test_lines_before_a_long_one_that_is_rewritten_come_back() -> None:
    assert sink_of("one\ntwo\n", "x" * 1000, "\rthree", kept_bytes=100).text == "one\ntwo\nthree"


def test_whatever_comes_is_harmless() -> None:
    for mode in ("tail", "head_tail"):
        text = "".join(f"a{evil}b\n" for _, evil, _ in SEQUENCES)
        for kept in (10, 100, 100_000):
            assert FORBIDDEN.search(sink_of(text, kept_bytes=kept, mode=mode).text) is None


def test_clear_forgets_everything() -> None:
    sink = OutputSink(kept_bytes=100)
    sink.feed("x" * 1000 + "\n\x1b]0;")
    sink.clear()
    sink.feed("new\n")
    assert sink.dump() == sink_of("new\n", kept_bytes=100)


def test_a_sink_that_was_dumped_keeps_its_summary_and_takes_no_more() -> None:
    sink = OutputSink(kept_bytes=10)
    sink.feed("one\n")
    sink.feed("two")
    assert sink.dump().text == "one\ntwo"
    assert sink.dump() is sink.dump()
    with pytest.raises(ValueError, match="dumped"):
        sink.feed("more")


# -- the artifact --------------------------------------------------------------------------------


def test_everything_is_spilled_raw_from_the_first_byte(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    pieces = ["\x1b[31mone\x1b[0m\n", "1%\r2%\n", "\ud800\u202e\n", *["x" * 60 + "\n"] * 20]
    summary = sink_of(*pieces, kept_bytes=200, spill=store.create)
    assert summary.truncated
    assert summary.artifact is not None
    raw = "".join(pieces).replace("\ud800", "\\ud800").encode()
    assert store.read(summary.artifact).data == raw
    assert summary.artifact_bytes == summary.raw_bytes == len(raw)
    assert not summary.artifact_truncated


def test_a_short_output_makes_no_artifact(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    assert sink_of("x" * 100, kept_bytes=100, spill=store.create).artifact is None
    # Much was printed, but all of it is shown: a progress bar.
    summary = sink_of("1%\r" * 10_000, kept_bytes=100, spill=store.create)
    assert (summary.artifact, summary.truncated) == (None, False)
    assert list(tmp_path.iterdir()) == []


def test_text_that_grows_when_it_is_shown_is_spilled_too(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    summary = sink_of("\x00" * 50, kept_bytes=100, spill=store.create)
    assert summary.truncated
    assert store.read(summary.artifact or "").data == b"\0" * 50


def test_an_artifact_that_is_too_long_says_so(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_artifact_bytes=10_000)
    summary = sink_of(*["é" * 99 + "\n"] * 1000, kept_bytes=200, spill=store.create)
    assert summary.artifact_truncated
    assert summary.artifact_bytes <= 10_000
    assert "the ends of it: artifact://" in (summary.notice or "")


class Failing:
    """An artifact that cannot be written to the end."""

    id = "failing"
    aborted = False

    def __init__(self, when: str) -> None:
        self.when = when

    def write(self, data: bytes) -> None:
        if self.when == "write" and data:
            raise ArtifactsUnavailable("No space left on device")

    def commit(self) -> ArtifactsUnavailable:  # never returns
        raise ArtifactsUnavailable("No space left on device")

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize("when", ["create", "write", "commit"])
def test_a_full_disk_does_not_stop_the_code(when: str) -> None:
    writer = Failing(when)

    def spill() -> Failing:
        if when == "create":
            raise ArtifactsUnavailable("No space left on device")
        return writer

    summary = sink_of(*["x" * 99 + "\n"] * 10, kept_bytes=200, spill=spill)
    assert summary.text == ("x" * 99 + "\n") * 2
    assert (summary.total_lines, summary.artifact) == (10, None)
    assert "No space left on device" in (summary.warning or "")
    assert "No space left on device" in (summary.notice or "")
    assert writer.aborted == (when != "create")
