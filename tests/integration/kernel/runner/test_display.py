"""What values look like, `display`, updates, figures, IPython's own display functions."""

from __future__ import annotations

import base64
import textwrap
from typing import TYPE_CHECKING

from cellwright.outputs.events import ClearEvent, DisplayEvent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.kernel.runner.conftest import Driver

RICH = """
class Rich:
    def _repr_html_(self): return "<b>h</b>"
    def _repr_markdown_(self): return "**m**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG", {"width": 5}
    def _repr_jpeg_(self): return b"jpeg"
    def _repr_json_(self): return {"a": [1, None, 1.5, {"b": True}]}
    def _repr_latex_(self): return "$l$"
    def __repr__(self): return "<rich>"
"""


async def test_every_form_is_shown(cells: Driver) -> None:
    await cells.ok(RICH)
    (shown,) = (await cells.ok("Rich()")).shown
    assert shown == DisplayEvent(
        {
            "text/html": "<b>h</b>",
            "text/markdown": "**m**",
            "image/svg+xml": "<svg/>",
            "image/png": base64.b64encode(b"\x89PNG").decode(),
            "image/jpeg": base64.b64encode(b"jpeg").decode(),
            "application/json": {"a": [1, None, 1.5, {"b": True}]},
            "text/latex": "$l$",
            "text/plain": "<rich>",
        },
        {"image/png": {"width": 5}},
        is_result=True,
        execution_count=2,
    )
    (displayed,) = (await cells.ok("display(Rich())")).shown
    assert displayed.data == shown.data
    assert not displayed.is_result
    (kind,) = (await cells.ok("Rich")).shown
    assert set(kind.data) == {"text/plain"}


async def test_a_mimebundle_goes_first(cells: Driver) -> None:
    source = """
        class Bundle:
            def _repr_mimebundle_(self, include=None, exclude=None):
                return {"text/html": "bundle", "image/png": b"p", "text/plain": "t"}, {"m": 1}
            def _repr_html_(self): return "not this"
        Bundle()
    """
    (shown,) = (await cells.ok(textwrap.dedent(source))).shown
    assert shown.data == {"text/html": "bundle", "image/png": "cA==", "text/plain": "t"}
    assert shown.metadata == {"m": 1}


async def test_a_form_that_raises_costs_only_itself(cells: Driver) -> None:
    source = """
        class Bad:
            def _repr_html_(self): raise ValueError("no html")
            def _repr_png_(self): raise NotImplementedError
            def __repr__(self): return 1 / 0
        Bad()
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert set(ran.shown[0].data) == {"text/plain"}
    assert "its repr raised ZeroDivisionError" in str(ran.result)
    assert ran.stderr == "Bad._repr_html_ raised ValueError: no html\n"


async def test_objects_that_answer_to_every_name_offer_nothing(cells: Driver) -> None:
    ran = await cells.ok("from unittest.mock import MagicMock\nMagicMock(name='m')")
    assert set(ran.shown[0].data) == {"text/plain"}


async def test_long_containers_are_broken_into_lines(cells: Driver) -> None:
    long = await cells.ok("{f'key{i}': list(range(10)) for i in range(5)}")
    assert str(long.result).count("\n") == 4
    huge = await cells.ok("list(range(10**6))")
    assert str(huge.result).startswith("[0, 1, 2")


async def test_displays_can_be_updated_and_cleared(cells: Driver) -> None:
    source = """
        handle = display("one", display_id="d1")
        handle.update("two")
        other = display("three", display_id=True)
        len(other.display_id)
    """
    ran = await cells.ok(textwrap.dedent(source))
    one, two, three, length = ran.shown
    assert (one.display_id, one.is_update) == ("d1", False)
    assert (two.display_id, two.is_update, two.data) == ("d1", True, {"text/plain": "'two'"})
    assert three.display_id
    assert length.data == {"text/plain": "16"}


async def test_odd_json_is_still_json(cells: Driver) -> None:
    source = "display({'application/json': {1: {2, 3}, 'x': object}}, raw=True)"
    (shown,) = (await cells.ok(source)).shown
    assert shown.data["application/json"]["1"] == "{2, 3}"


async def test_ipython_display_arrives_here(cells: Driver) -> None:
    source = """
        from IPython.display import HTML, Markdown, clear_output, display, update_display
        display(HTML("<i>x</i>"), display_id="k")
        update_display(Markdown("*y*"), display_id="k")
        print("z")
        clear_output(wait=True)
    """
    ran = await cells.ok(textwrap.dedent(source))
    first, second = ran.shown
    assert (first.data["text/html"], first.display_id) == ("<i>x</i>", "k")
    assert (second.data["text/markdown"], second.is_update) == ("*y*", True)
    assert ClearEvent(wait=True) in ran.events
    assert ran.stderr == ""


FIGURE = """
class Figure:
    def __init__(self, number): self.number = number
    def savefig(self, file, **options): file.write(b"png%d" % self.number)
    def _repr_html_(self): return None
"""
PYPLOT = """
import os
from matplotlib.figure import Figure
figures = {}
def figure(number=None):
    number = number or len(figures) + 1
    return figures.setdefault(number, Figure(number))
def get_fignums(): return list(figures)
def get_backend(): return os.environ["MPLBACKEND"]
def close(figure): figures.pop(figure.number, None)
def show(): raise RuntimeError("no window")
"""


async def test_figures_are_shown_once_and_closed(cells: Driver, tmp_path: Path) -> None:
    # A matplotlib in miniature: its own tests are not ours.
    package = tmp_path / "matplotlib"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "figure.py").write_text(FIGURE)
    (package / "pyplot.py").write_text(PYPLOT)

    def pngs(shown: list[DisplayEvent]) -> list[bytes]:
        return [base64.b64decode(s.data["image/png"]) for s in shown if "image/png" in s.data]

    at_end = await cells.ok("import matplotlib.pyplot as plt\nplt.figure(); plt.figure()\nprint(1)")
    assert pngs(at_end.shown) == [b"png1", b"png2"]
    shown = await cells.ok("plt.figure(7)\nplt.show()\nprint('after')")
    assert pngs(shown.shown) == [b"png7"]
    assert shown.order[-1] == "stdout:after\n"
    result = await cells.ok("plt.figure(3)")
    assert pngs(result.shown) == [b"png3"]
    failed = await cells.run("plt.figure(4)\n1/0")
    assert pngs(failed.shown) == [b"png4"]
    assert (await cells.ok("plt.get_fignums()")).result == "[]"
