"""Read the colours of printed text into styles, so that none is ever passed through."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from rich.color import Color
from rich.style import Style
from rich.text import Text

from cellwright.outputs.sanitize import split_colors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# Blinking and concealed text is left out: the one annoys, the other hides.
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {
    21: ("bold",),
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
    39: ("color",),
    49: ("bgcolor",),
}


def styled_lines(lines: Iterable[str]) -> list[Text]:
    """Printed lines as styled ones; a colour lasts until another, over the end of a line."""
    state: dict[str, Any] = {}
    result = []
    for line in lines:
        text = Text()
        for parameters, piece in split_colors(line):
            if parameters is not None:
                _change(state, parameters)
            text.append(piece, _style(tuple(state.items())) if state else None)
        result.append(text)
    return result


def _change(state: dict[str, Any], parameters: str) -> None:
    fields = iter(parameters.split(";"))
    for field in fields:
        head, *rest = field.split(":")
        code = _number(head)
        if code == 0:
            state.clear()
        elif code in (38, 48):
            color = _extended(iter([rest[0], *rest[1:][-3:]]) if rest else fields)
            if color is not None:
                state["color" if code == 38 else "bgcolor"] = color
        elif code in _ON:
            state[_ON[code]] = True
            if rest == ["0"]:  # 4:0 is no underline
                state.pop(_ON[code])
        elif code in _OFF:
            for name in _OFF[code]:
                state.pop(name, None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            state["color"] = Color.from_ansi(code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            state["bgcolor"] = Color.from_ansi(code - 40 if code < 100 else code - 92)


def _extended(fields: Iterator[str]) -> Color | None:
    """One of 256 colours, or any; what is no colour is None."""
    kind = _number(next(fields, ""))
    numbers = [_number(field) for field in islice(fields, {5: 1, 2: 3}.get(kind, 0))]
    if not all(0 <= number <= 255 for number in numbers):
        return None
    if len(numbers) == 3:
        return Color.from_rgb(*numbers)
    return Color.from_ansi(numbers[0]) if numbers else None


def _number(field: str) -> int:
    return int(field[:4]) if field else 0


@lru_cache(512)
def _style(state: tuple[tuple[str, Any], ...]) -> Style:
    wanted = dict(state)
    if wanted.get("color") == wanted.get("bgcolor"):  # text in the colour of its background
        wanted.pop("color", None)
        wanted.pop("bgcolor", None)
    return Style(**wanted)
