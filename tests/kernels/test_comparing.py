"""The comparison of two runs: it sees all that matters, and forgives only chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import fidelity
from tests.kernels.comparing import comparable, frame, plain

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_compared_leaves_out_nothing_but_chance() -> None:
    told = "<A at 0x7f00aa11> /tmp/ipykernel_12/3.py:1: W\nWall time: 3.1 ms\n3.5 s, 0x12, id 77"
    assert plain(told) == "<A at 0x…> /tmp/ipykernel_…/3.py:1: W\nWall time: …\n3.5 s, 0x12, id 77"
    timed = "1.02 µs ± 5 ns per loop (mean ± std. dev. of 7 runs, 1,000 loops each)\nand 4 ms"
    assert plain(timed) == "… per loop\nand 4 ms"

    def said(*outputs: dict[str, str]) -> list[object]:
        cell = {"cell_type": "code", "source": "x", "execution_count": 1, "outputs": [*outputs]}
        return comparable([cell])

    a, b, other = (
        {"output_type": "stream", "name": "stdout", "text": "a"},
        {"output_type": "stream", "name": "stdout", "text": "b"},
        {"output_type": "error", "ename": "E", "evalue": "v"},
    )
    assert said(a, b) == said({**a, "text": "ab"}) != said(b, a)
    assert said(a, {**b, "name": "stderr"}) == said({**b, "name": "stderr"}, a) != said(a, b)
    assert said(a, other, b) != said(a, b, other)
    assert said(other) != said({**other, "evalue": "w"})


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ('"outputs": []', '"outputs": [ {"text": "]}"} ]', True),
        ('"execution_count":null', '"execution_count":7', True),
        ('"execution_count":null', '"execution_count": null', False),
        ('"outputs": 1', '"outputs": 2', False),
        ('"a":"\\u00e9"', '"a":"é"', False),
        ("\n", "", False),
    ],
)
def test_the_rest_of_a_file_is_all_but_counts_and_outputs(
    old: str, new: str, is_same: bool
) -> None:
    text = (
        '{"a":"\\u00e9", "cells" :[{"cell_type":"raw", "outputs": 1},\n'
        '{"execution_count":null, "outputs": [], "cell_type": "code"} ] }'
    )
    assert old in text
    assert (frame(text) == frame(text.replace(old, new))) is is_same


def test_a_comparison_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    record = tmp_path / "folder" / "record.jsonl"
    same, bad = fidelity.Outcome("a", fidelity.SAME), fidelity.Outcome("b", fidelity.UNEXPLAINED)
    last = fidelity.Outcome("c", fidelity.CHANCE)
    assert fidelity.load_outcomes(record, "now") == {}
    for each in (same, bad):
        fidelity.keep_outcome(record, "now", each)
    with record.open("a") as file:
        file.write('["now", "cut')
    fidelity.keep_outcome(record, "now", last)
    # A difference without a reason is looked at again.
    assert fidelity.load_outcomes(record, "now") == {"a": same, "c": last}
    assert fidelity.load_outcomes(record, "other code") == {}
