"""How values are shown: MIME bundles, `display()`, figures."""

# Why not: see the package's docstring.

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .streams import OutputStreams

METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_json_": "application/json",
    "_repr_latex_": "text/latex",
}
PLAIN = (int, float, bool, complex, type(None))
LINE = 79
PRETTY_CHARS = 1 << 16  # pretty-printing more than this takes longer than it helps
STATUS = "application/x-cellwright-status"


def format_text(value: object) -> str:
    """Format a value as text; if its repr fails, the text says so."""
    try:
        text = repr(value)
        if LINE < len(text) <= PRETTY_CHARS and isinstance(value, (dict, list, set, tuple)):
            from pprint import pformat

            text = pformat(value, width=LINE, compact=True, sort_dicts=False)
    except Exception as problem:  # noqa: BLE001
        kind = type(value)
        return f"<{kind.__module__}.{kind.__qualname__} object; its repr raised {_describe_problem(problem)}>"
    return text


def _describe_problem(problem: BaseException) -> str:
    try:
        return f"{type(problem).__name__}: {problem}"
    except Exception:  # noqa: BLE001
        return type(problem).__name__


def make_bundle(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make every form the value offers, and their metadata. There is always `text/plain`."""
    if type(value) in PLAIN:
        return {"text/plain": repr(value)}, {}
    data: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    if not isinstance(value, type):
        if _is_figure(value):
            data["image/png"] = _base64(draw_png(value))
        _ask_forms(value, data, metadata)
    if "text/plain" not in data:
        data["text/plain"] = format_text(value)
    return data, metadata


def _ask_forms(value: Any, data: dict[str, Any], metadata: dict[str, Any]) -> None:
    whole = _call(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(whole, tuple) and len(whole) == 2:
        whole, more = whole
        if isinstance(more, dict):
            metadata.update(more)
    if isinstance(whole, dict):
        data.update({str(kind): _to_plain(item) for kind, item in whole.items()})
    for method, kind in METHODS.items():
        if kind in data:
            continue
        form = _call(value, method)
        if isinstance(form, tuple) and len(form) == 2:
            form, metadata[kind] = form
        if form is not None:
            data[kind] = _to_plain(form)


def _call(value: Any, method: str, **arguments: Any) -> Any:
    try:
        found = getattr(value, method, None)
        # Objects that have every attribute, such as mocks, do not mean it.
        if not callable(found) or not callable(getattr(type(value), method, None)):
            return None
        return found(**arguments)
    except NotImplementedError:
        return None
    except Exception as problem:  # noqa: BLE001
        sys.stderr.write(f"{type(value).__name__}.{method} raised {_describe_problem(problem)}\n")
        return None


def _to_plain(item: Any) -> Any:
    return _base64(item) if isinstance(item, (bytes, bytearray, memoryview)) else item


def _base64(data: bytes | bytearray | memoryview) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode()


def _is_figure(value: object) -> bool:
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def draw_png(figure: Any) -> bytes:
    """Draw a figure."""
    from io import BytesIO

    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


class Displays:
    """Sends displays; `display` is what cells call."""

    def __init__(self, streams: OutputStreams) -> None:
        self._streams = streams

    def send(
        self,
        kind: str,
        bundle: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Send a bundle, after everything printed before it."""
        streams = self._streams
        if streams.wire.is_cut:
            sys.stdout.write(f"{bundle.get('text/plain', '')}\n")
            return
        streams.flush()
        frame = {"id": streams.cell, "bundle": bundle, **more}
        if metadata:
            frame["metadata"] = metadata
        streams.wire.send(kind, **frame)

    def status(self, op: str, **facts: Any) -> None:
        """Report to the host, as data, what a magic did."""
        self.send("display", {STATUS: {"op": op, **facts}})

    def display(
        self,
        *values: Any,
        raw: bool = False,
        metadata: dict[str, Any] | None = None,
        display_id: str | bool | None = None,
        update: bool = False,
        **_: Any,
    ) -> Any:
        """Show values in every form they offer; with `raw`, they are MIME bundles already.

        With `display_id` (True: a new one) returns a handle whose `update` shows something else.
        """
        if display_id is True:
            from os import urandom

            display_id = urandom(8).hex()
        more: dict[str, Any] = {"displayId": str(display_id)} if display_id else {}
        if update:
            more["update"] = True
        for value in values:
            data, found = (value, {}) if raw else make_bundle(value)
            self.send("display", data, {**found, **(metadata or {})}, **more)
            self.close_figure(value)
        return DisplayHandle(self, str(display_id)) if display_id else None

    def clear(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002 (as IPython has it)
        """Clear what the cell showed; with `wait`, when something new comes."""
        self._streams.flush()
        self._streams.wire.send("clear", id=self._streams.cell, wait=bool(wait))

    def figures(self, *_: Any, **__: Any) -> None:
        """Show and close the open figures of pyplot, if it is used at all."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        numbers: list[int] = getattr(pyplot, "get_fignums", list)()
        if not numbers or pyplot is None or pyplot.get_backend().lower() != "agg":
            return
        for number in numbers:
            try:
                self.display(pyplot.figure(number))
            except Exception as problem:  # noqa: BLE001 (the cell's own end is reported elsewhere)
                sys.stderr.write(
                    f"figure {number} could not be drawn: {_describe_problem(problem)}\n"
                )
                pyplot.close(number)

    def close_figure(self, figure: Any) -> None:
        """Close a figure that was shown: pyplot would show it again."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and _is_figure(figure):
            pyplot.close(figure)


class DisplayHandle:
    """A display that can be changed later."""

    def __init__(self, displays: Displays, display_id: str) -> None:
        self._displays = displays
        self.display_id = display_id

    def display(self, value: Any, **more: Any) -> None:
        """Show something new under this id."""
        self._displays.display(value, display_id=self.display_id, **more)

    def update(self, value: Any, **more: Any) -> None:
        """Show something else wherever this id is shown."""
        self._displays.display(value, display_id=self.display_id, update=True, **more)
