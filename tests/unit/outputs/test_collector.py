"""The outputs of a cell are what Jupyter would have put into the notebook."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import nbformat
import pytest

from cellwright.outputs.artifacts import ArtifactStore
from cellwright.outputs.collector import Collector
from cellwright.outputs.events import ClearEvent, DisplayEvent, ErrorEvent, RawPiece, StreamEvent

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from cellwright.outputs.events import OutputEvent

ENOUGH = 10**8


def collect(*events: OutputEvent) -> list[dict[str, Any]]:
    collector = Collector(limit_bytes=ENOUGH)
    for event in events:
        collector.feed(event)
    return collector.outputs()


def out(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


def shown(text: str, **options: Any) -> DisplayEvent:
    return DisplayEvent({"text/plain": text}, **options)


def test_pieces_of_one_stream_become_one_output() -> None:
    assert collect(
        StreamEvent("stdout", "a"),
        StreamEvent("stdout", "b\n"),
        StreamEvent("stderr", "c"),
        StreamEvent("stdout", "d"),
        shown("x"),
        StreamEvent("stdout", "e"),
        StreamEvent("stdout", ""),
    ) == [out("ab\n"), out("c", "stderr"), out("d"), display("x"), out("e")]


def test_every_kind_of_output_is_valid_in_a_notebook() -> None:
    outputs = collect(
        StreamEvent("stdout", "a"),
        DisplayEvent(
            {"text/plain": "x", "application/json": [1]}, {"text/plain": {"a": 1}}, "id-1"
        ),
        DisplayEvent({"text/plain": "42"}, is_result=True, execution_count=7),
        ErrorEvent("ValueError", "no", ("Traceback", "ValueError: no")),
    )
    assert outputs == [
        out("a"),
        {
            "output_type": "display_data",
            "data": {"text/plain": "x", "application/json": [1]},
            "metadata": {"text/plain": {"a": 1}},
        },
        {
            "output_type": "execute_result",
            "data": {"text/plain": "42"},
            "metadata": {},
            "execution_count": 7,
        },
        {
            "output_type": "error",
            "ename": "ValueError",
            "evalue": "no",
            "traceback": ["Traceback", "ValueError: no"],
        },
    ]
    assert json.loads(json.dumps(outputs)) == outputs
    cell = nbformat.v4.new_code_cell("x", outputs=[nbformat.from_dict(o) for o in outputs])
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))


def test_clear_removes_everything_at_once() -> None:
    assert collect(StreamEvent("stdout", "a"), ClearEvent()) == []
    assert collect(StreamEvent("stdout", "a"), ClearEvent(), shown("b")) == [display("b")]


def test_clear_that_waits_removes_when_something_comes() -> None:
    first = (StreamEvent("stdout", "a"), shown("b"), ClearEvent(wait=True))
    assert collect(*first) == [out("a"), display("b")]
    assert collect(*first, StreamEvent("stdout", "c")) == [out("c")]
    assert collect(*first, ErrorEvent("E", ""))[0]["output_type"] == "error"
    assert collect(*first, ClearEvent(), StreamEvent("stdout", "c"), shown("d")) == [
        out("c"),
        display("d"),
    ]


def test_text_after_a_clear_does_not_join_what_was_cleared() -> None:
    assert collect(
        StreamEvent("stdout", "a"), ClearEvent(wait=True), StreamEvent("stdout", "b")
    ) == [out("b")]


def test_an_update_changes_every_display_of_its_id() -> None:
    events = (
        shown("1", display_id="x"),
        shown("2", display_id="y"),
        shown("3", display_id="x"),
        DisplayEvent({"text/plain": "4"}, display_id="x", is_result=True, execution_count=1),
        DisplayEvent({"text/html": "<b>"}, {"m": 1}, display_id="x", is_update=True),
    )
    new = {"data": {"text/html": "<b>"}, "metadata": {"m": 1}}
    assert collect(*events) == [
        {"output_type": "display_data", **new},
        display("2"),
        {"output_type": "display_data", **new},
        {"output_type": "execute_result", **new, "execution_count": 1},
    ]


def test_a_display_that_is_shown_again_changes_the_earlier_ones_as_in_jupyter() -> None:
    events = (
        shown("1", display_id="x"),
        shown("2", display_id="y"),
        DisplayEvent(
            {"text/html": "<b>"}, {"m": 1}, display_id="x", is_result=True, execution_count=3
        ),
    )
    new = {"data": {"text/html": "<b>"}, "metadata": {"m": 1}}
    assert collect(*events) == [
        {"output_type": "display_data", **new},
        display("2"),
        {"output_type": "execute_result", **new, "execution_count": 3},
    ]
    assert collect(shown("1"), shown("2")) == [display("1"), display("2")]


def test_an_update_does_not_clear_and_adds_nothing() -> None:
    assert collect(
        shown("1", display_id="x"),
        ClearEvent(wait=True),
        shown("2", display_id="x", is_update=True),
    ) == [display("2")]


def test_an_update_for_another_cell_is_told() -> None:
    first, second = Collector(limit_bytes=ENOUGH), Collector(limit_bytes=ENOUGH)
    first.feed(shown("1", display_id="x"))
    update = shown("2", display_id="x", is_update=True)
    assert second.feed(update) is False
    assert second.outputs() == []
    assert first.update(update) is True
    assert first.outputs() == [display("2")]
    first.feed(ClearEvent())
    assert first.update(update) is False
    assert first.feed(shown("2", is_update=True)) is False


def test_the_display_id_is_not_stored() -> None:
    assert "x-secret-id" not in json.dumps(collect(shown("1", display_id="x-secret-id")))


def test_outputs_are_copies() -> None:
    collector = Collector(limit_bytes=ENOUGH)
    collector.feed(DisplayEvent({"application/json": {"a": []}}, display_id="x"))
    collector.feed(StreamEvent("stdout", "a"))
    collector.outputs()[0]["data"]["application/json"]["a"].append(1)
    collector.outputs()[1]["text"] = "b"
    assert collector.outputs()[0]["data"] == {"application/json": {"a": []}}
    assert collector.outputs()[1] == out("a")


def test_a_million_pieces_are_no_trouble() -> None:
    collector = Collector(limit_bytes=ENOUGH)
    for number in range(100_000):
        collector.feed(StreamEvent("stdout", f"{number}\n"))
        if number % 20_000 == 0:
            collector.outputs()
    assert collector.outputs()[0]["text"] == "".join(f"{number}\n" for number in range(100_000))


# -- with a limit --------------------------------------------------------------------------------


def test_below_the_limit_nothing_is_different(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    collector = Collector(limit_bytes=10_000, spill=store.create)
    for event in (StreamEvent("stdout", "a"), shown("b"), StreamEvent("stdout", "c")):
        collector.feed(event)
    assert collector.finish() == [out("a"), display("b"), out("c")]
    assert store.list() == []


@pytest.mark.parametrize("piece", [1, 10, 5000])
def test_of_a_long_stream_the_end_stays_and_all_is_in_the_artifact(
    tmp_path: Path, piece: int
) -> None:
    store = ArtifactStore(tmp_path)
    collector = Collector(limit_bytes=20_000, spill=store.create)
    text = "".join(f"línea {number}\n" for number in range(5000))
    for start in range(0, len(text), piece):
        collector.feed(StreamEvent("stdout", text[start : start + piece]))
    so_far = collector.outputs()[-1]["text"]
    assert text.endswith(so_far)
    assert len(so_far.encode()) <= 20_000
    collector.feed(DisplayEvent({"text/plain": "42"}, is_result=True, execution_count=1))
    note, stream, result = collector.finish()
    assert note["name"] == "stderr"
    (artifact,) = store.list()
    assert artifact.uri in note["text"]
    assert "left out of the notebook" in note["text"]
    assert text.endswith(stream["text"])
    assert 15_000 < len(stream["text"].encode()) <= 20_000
    kept = store.read(artifact.id, 0, artifact.size).data.decode()
    assert kept.startswith(text)
    assert result["execution_count"] == 1


def test_the_error_and_the_result_always_stay() -> None:
    collector = Collector(limit_bytes=2000)
    collector.feed(DisplayEvent({"text/plain": "r" * 5000}, is_result=True, execution_count=1))
    for number in range(1000):
        collector.feed(shown(str(number)))
    collector.feed(ErrorEvent("E", "x" * 5000))
    outputs = collector.finish()
    kinds = [output["output_type"] for output in outputs]
    assert kinds[:2] == ["stream", "execute_result"]
    assert kinds[-1] == "error"
    assert len(outputs) < 30
    assert "displays" in outputs[0]["text"]
    assert "not kept" in outputs[0]["text"]


def test_an_output_that_is_too_large_is_in_the_artifact_as_it_came(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    collector = Collector(limit_bytes=4000, spill=store.create)
    for _ in range(3):
        collector.feed(RawPiece(b"x" * 1000))
    collector.feed(DisplayEvent({"text/plain": "xx"}, is_result=True, execution_count=1))
    note, result = collector.finish()
    (artifact,) = store.list()
    assert artifact.uri in note["text"]
    assert store.read_text(artifact.id).text.startswith("x" * 3000)
    assert result["data"] == {"text/plain": "xx"}


def test_to_make_room_in_a_long_stream_only_what_goes_is_touched() -> None:
    collector = Collector(limit_bytes=100_000)
    for number in range(13):
        collector.feed(StreamEvent("stdout", f"{number:x}" * 10_000))
    (entry,) = collector._entries
    assert entry.pieces is not None
    assert len(entry.pieces) > 5  # not joined
    text = collector.outputs()[-1]["text"]
    assert text.endswith("c" * 10_000)
    assert 90_000 < len(text) <= 100_000


def test_displays_that_go_are_in_the_artifact(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    collector = Collector(limit_bytes=4000, spill=store.create)
    for number in range(25):
        collector.feed(shown(f"display {number}"))
    note = collector.finish()[0]
    (artifact,) = store.list()
    assert artifact.uri in note["text"]
    lines = store.read_text(artifact.id).text.splitlines()
    assert [json.loads(line) for line in lines] == [
        display(f"display {number}") for number in range(25)
    ]


def test_a_flood_of_displays_stays_bounded() -> None:
    collector = Collector(limit_bytes=100_000)
    tracemalloc.start()
    try:
        for number in range(1500):
            collector.feed(shown("x" * 1000, display_id=f"d{number % 7}"))
            collector.feed(shown("y" * 1000, display_id="d3", is_update=True))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    assert len(json.dumps(collector.finish())) < 120_000


def test_one_display_shown_without_end_stays_bounded_and_costs_the_same_each_time() -> None:
    collector = Collector(limit_bytes=1_000_000)
    for number in range(20_000):  # a minute, if every one of them were changed one by one
        collector.feed(shown(f"{number:100}", display_id="x"))
    outputs = collector.outputs()
    assert 1_000 < len(outputs) < 5_000
    assert {output["data"]["text/plain"] for output in outputs[1:]} == {f"{19_999:100}"}
    collector.feed(shown("y" * 100_000, display_id="x", is_update=True))
    assert len(collector.outputs()) <= 15
    collector.feed(shown("z", display_id="x"))
    assert {output["data"]["text/plain"] for output in collector.outputs()[1:]} == {"z"}


def test_a_clear_makes_room_again() -> None:
    collector = Collector(limit_bytes=2000)
    collector.feed(StreamEvent("stdout", "x" * 10_000))
    assert len(collector.outputs()) == 2
    collector.feed(ClearEvent())
    collector.feed(StreamEvent("stdout", "y" * 1000))
    assert collector.finish() == [out("y" * 1000)]


def test_a_lone_surrogate_is_kept_as_it_came() -> None:
    collector = Collector(limit_bytes=1000)
    collector.feed(StreamEvent("stdout", "x" * 5000 + "\ud800end"))
    assert collector.outputs()[1]["text"].endswith("\ud800end")


def test_a_long_error_obeys_the_limit_and_the_whole_of_it_is_in_the_artifact(
    tmp_path: Path,
) -> None:
    store = ArtifactStore(tmp_path)
    collector = Collector(limit_bytes=20_000, spill=store.create)
    collector.feed(StreamEvent("stdout", "before\n"))
    lines = ("Traceback", *(f"line {n} " + "x" * 90 for n in range(900)), "E: " + "y" * 90_000)
    collector.feed(ErrorEvent("E", "start" + "z" * 200_000 + "end", lines))
    note, stream, error = collector.finish()
    assert stream == out("before\n")
    assert len(json.dumps(error)) < 21_000
    assert error["evalue"].startswith("start")
    assert error["evalue"].endswith("end")
    assert error["traceback"][-1].startswith("E: yyy")
    (artifact,) = store.list()
    assert artifact.uri in note["text"]
    whole = store.read(artifact.id, 0, artifact.size).data.decode()
    assert "z" * 200_000 in whole
    assert "line 899" in whole


def test_a_note_says_how_much_of_a_flood_the_artifact_has(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts", max_artifact_bytes=20_000)
    collector = Collector(limit_bytes=1000, spill=lambda: store.create(name="outputs"))
    for number in range(10_000):
        collector.feed(StreamEvent("stdout", f"line {number}\n"))
    note = collector.finish()[0]["text"]
    (artifact,) = store.list()
    assert artifact.truncated
    assert f"its beginning and end, 20 kB of 99 kB: {artifact.uri}" in note
    assert "all of it" not in note


def test_of_a_huge_error_the_artifact_has_both_ends_and_the_note_says_so(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    collector = Collector(limit_bytes=20_000, spill=store.create)
    collector.feed(ErrorEvent("E", "start" + "z" * 20_000_000 + "end", ("Traceback", "E: z")))
    note, error = collector.finish()
    assert len(json.dumps(error)) < 21_000
    (artifact,) = store.list()
    assert artifact.size < 9 * 2**20
    assert f"all but the middle of an error: {artifact.uri}" in note["text"]
    whole = store.read(artifact.id, 0, artifact.size).data.decode()
    assert "start" in whole
    assert "zend" in whole
    assert "characters left out" in whole
