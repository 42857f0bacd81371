"""Nothing in a notebook drives the terminal, wherever it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.segment import ControlType, Segment
from rich.style import Style

from cellwright.cli.render.colors import style_lines
from cellwright.outputs.sanitize import fold_lines, make_visible, one_line, render_printed
from tests.unit.cli import show_samples as make
from tests.unit.cli.show_rendering import SGR, draw, render

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

# Whatever is left of a view without its colours must not hold one of these.
FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200d-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufe00-\ufe0f\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff\U000e0000-\U0010ffff]"
)

SEQUENCES = {
    # CSI
    "clear": "\x1b[2J",
    "home": "\x1b[H",
    "move": "\x1b[10;10H",
    "up": "\x1b[5A",
    "erase line": "\x1b[2K",
    "scroll": "\x1b[99S",
    "alternate screen": "\x1b[?1049h",
    "hide cursor": "\x1b[?25l",
    "mouse": "\x1b[?1003h",
    "bracketed paste": "\x1b[?2004h",
    "report": "\x1b[6n",
    "attributes": "\x1b[c",
    "resize": "\x1b[8;1;1t",
    "title report": "\x1b[21t",
    "keyboard": "\x1b[>4;2m",
    "kitty keyboard": "\x1b[>31u",
    "soft reset": "\x1b[!p",
    "conceal": "\x1b[8m",
    "blink": "\x1b[5m",
    "colour": "\x1b[31m",
    "colours": "\x1b[1;38;5;196;48;2;1;2;3m",
    "underline colour": "\x1b[4:3;58:2::1:2:3m",
    "too many": "\x1b[" + "9" * 5000 + "m",
    "open": "\x1b[",
    "open with numbers": "\x1b[12;",
    "8-bit": "\x9b2J",
    "8-bit colour": "\x9b31m",
    # OSC
    "title": "\x1b]0;pwned\x07",
    "title by ST": "\x1b]2;pwned\x1b\\",
    "link": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "palette": "\x1b]4;1;rgb:00/00/00\x07",
    "picture": "\x1b]1337;File=inline=1:AAAA\x07",
    "notify": "\x1b]9;hello\x07",
    "folder": "\x1b]7;file:///etc\x07",
    "shell mark": "\x1b]133;A\x07",
    "8-bit OSC": "\x9d0;pwned\x9c",
    "open OSC": "\x1b]0;never ends",
    # DCS, APC, PM, SOS
    "sixel": "\x1bPq#0;2;0;0;0~~\x1b\\",
    "settings": "\x1bP$qm\x1b\\",
    "tmux": "\x1bPtmux;\x1b\x1b]52;c;AA==\x07\x1b\\",
    "kitty": "\x1b_Ga=T,f=100;AAAA\x1b\\",
    "privacy": "\x1b^secret\x1b\\",
    "string": "\x1bXsecret\x1b\\",
    "8-bit DCS": "\x90q\x9c",
    "8-bit APC": "\x9fGa=T\x9c",
    "8-bit others": "\x98x\x9c\x9ex\x9c",
    # short ones
    "reset": "\x1bc",
    "save": "\x1b7\x1b8",
    "charset": "\x1b(0lqqk\x1b(B",
    "shift": "\x0e\x0f",
    "reverse index": "\x1bM",
    "lone escape": "\x1b",
    "two escapes": "\x1b\x1b[2J",
    "next line": "\x85",
    # controls
    "bell": "\x07",
    "backspace": "safe\b\b\b\bevil",
    "null": "\x00",
    "delete": "\x7f",
    "return": "safe\revil",
    "return at the end": "evil\r",
    "vertical": "\x0b\x0c",
    "separators": "\x1c\x1d\x1e\x1f",
    "tab": "\t",
    # what a person cannot see
    "override": "\u202egnp.exe\u202c",
    "embedding": "\u202a\u202b\u202d",
    "isolates": "\u2066\u2067\u2068\u2069",
    "marks": "\u200e\u200f\u061c",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "fillers": "\u115f\u1160\u3164\uffa0",
    "lines": "\u2028\u2029",
    "variations": "a\ufe00\ufe0f\U000e0101",
    "tags": "\U000e0041\U000e007f",
    "annotation": "\ufff9\ufffa\ufffb",
    "private": "\ue000\U0010eeee\u0305",
    "surrogate": "\ud800",
    "soft hyphen": "\xad",
    # as references, which only a parser sees
    "HTML reference": "&#27;[2J&#x9b;2J&#x202e;&#8203;&#x7;&zwj;&rlm;",
    "huge reference": "&#" + "9" * 5000 + ";",
    # what rich would obey
    "markup": "[bold red]x[/] [link=http://evil.example]y[/link] [@click=app.quit]z",
    "emoji code": ":bomb:",
}


def everywhere(evil: str) -> bytes:
    """A notebook that says it in every place that a view may show."""
    bundle: dict[str, dict[str, Any]] = {
        "plain": {"text/plain": evil},
        "markdown": {
            "text/markdown": f"# {evil}\n\n- {evil}\n\n`{evil}` [{evil}](<{evil}>) ![{evil}](x)"
        },
        "latex": {"text/latex": evil},
        "html": {"text/html": f"<p>{evil}</p><img alt='{evil}'><a href='http://{evil}'>{evil}</a>"},
        "table": {"text/html": f"<table><tr><th>{evil}</th></tr><tr><td>{evil}</td></tr></table>"},
        "json": {"application/json": {evil: [evil, {evil: evil}], "text": evil}},
        "status": {"application/x-cellwright-status": {evil: evil}},
        "mime": {f"application/{evil}": evil},
        "svg": {"image/svg+xml": evil},
        "png": {"image/png": evil},
        "other text": {"text/x-odd": evil},
    }
    outputs = [
        *map(make.display, bundle.values()),
        make.stream(evil),
        make.stream(f"{evil}\nnext\n", "stderr"),
        make.stream("x", evil),
        make.error(evil, evil, []),
        make.error(evil, evil, [f"Traceback {evil}", evil]),
        {"output_type": evil},
    ]
    cells = [
        make.code(f"{evil}\nx = '{evil}'  # {evil}\n%%{evil}", outputs, metadata={"tags": [evil]}),
        make.code(f"%%bash\n{evil}"),
        make.code("x = 1", id=evil),
        make.markdown(
            f"# {evil}\n\n{evil}\n\n| {evil} |\n|--|\n| {evil} |\n\n```{evil}\n{evil}\n```"
        ),
        make.markdown(f"> {evil}\n\n1. {evil}\n\n<div>{evil}</div>\n\n${evil}$ <br> **{evil}**"),
        {"cell_type": "raw", "metadata": {}, "source": evil},
        {"cell_type": evil, "metadata": {}, "source": evil},
        evil,
    ]
    kernel = {"display_name": evil, "name": evil, "language": evil}
    return make.notebook(cells, {"kernelspec": kernel, "language_info": {"pygments_lexer": evil}})


@pytest.mark.parametrize("evil", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_nothing_gets_through_anywhere(evil: str) -> None:
    data = everywhere(evil)
    plain = render(data, name=f"{evil}.ipynb", expanded=True)
    assert FORBIDDEN.search(plain) is None
    colored = render(data, name=f"{evil}.ipynb", colors=True, images="blocks")
    assert FORBIDDEN.search(SGR.sub("", colored)) is None
    assert "\x1b[8m" not in colored
    assert "\x1b[5m" not in colored


class Careless:
    """A part that forgot to make its text harmless."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield Segment("a\x1b[2J\u202eb", Style(link="https://evil.example", bold=True))
        yield Segment("\x1b[2J", None, [(ControlType.BELL,)])
        yield Segment.line()


def test_the_gate_holds_what_a_part_forgets() -> None:
    assert draw(Careless(), colors=True) == "\x1b[1ma␛[2J<U+202E>b\x1b[0m\n"


def test_markup_is_text_in_every_place() -> None:
    evil = SEQUENCES["markup"]
    shown = render(everywhere(evil), width=200, name=evil, expanded=True)
    assert shown.count("[bold red]x[/]") > 25
    assert shown.count("[link=http://evil.example]y[/link]") > 25
    assert ":bomb:" in render(everywhere(":bomb:"))


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_no_text_at_all_gets_through(text: str) -> None:
    assert FORBIDDEN.search(render(everywhere(text), name=text)) is None


# -- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("plain text\twith\ntabs", "plain text\twith\ntabs"),
        ("a\x1b[31mb", "a␛[31mb"),
        ("\x07\x00\x08", "␇␀␈"),
        ("\x7f", "␡"),
        ("\x9b", "<U+009B>"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("admin\u202e // check", "admin<U+202E> // check"),
        ("pass\u200bword", "pass<U+200B>word"),
        ("pass\u200dword", "pass<U+200D>word"),
        ("\U000e0041", "<U+E0041>"),
        ("\ud800", "<U+D800>"),
        ("é ü ñ ― “x” €", "é ü ñ ― “x” €"),
        ("東京 한국 עברית", "東京 한국 עברית"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("क्\u200dष", "क्ष"),
        ("\xa0\u3000", "\xa0\u3000"),
        ("⣿⠀", "⣿⠀"),
        ("👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3", "👩💻 ❤ 1\u20e3"),
        ("👍🏽 🇩🇪", "👍🏽 🇩🇪"),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f3f4"),
        ("\U0001fae8", "\U0001fae8"),
        ("e\u0301\u0323" + "\u0334" * 99, "e\u0301\u0323\u0334\u0334"),
    ],
)
def test_what_is_hidden_is_made_visible(given: str, seen: str) -> None:
    assert make_visible(given) == seen
    assert make_visible(seen) == seen.replace("\r\n", "\n")


def test_a_name_stays_on_its_line() -> None:
    assert one_line("a\nb\tc\r\nd") == "a␊b␉c␍␊d"


@given(st.text(st.characters(exclude_categories=())))
def test_making_visible_twice_changes_nothing(text: str) -> None:
    once = make_visible(text)
    assert make_visible(once) == once
    assert FORBIDDEN.search(once.replace("\t", "").replace("\n", "")) is None


# -- what programs print ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ("one\ntwo", ["one", "two"]),
        ("one\r\ntwo\r\n", ["one", "two", ""]),
        ("  0%\r 50%\r100%\ndone", ["100%", "done"]),
        ("100%\r", ["100%"]),
        ("10%\b\b\b20%", ["20%"]),
        ("abc\b\b\b\b\bx", ["x"]),
        ("\x1b[31ma\bb", ["\x1b[31mb"]),
    ],
)
def test_a_progress_bar_is_folded_into_its_last_state(given: str, lines: list[str]) -> None:
    assert fold_lines(given) == lines


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq~~\x1b\\after", "after"),
        ("\x1b[2Kdone", "done"),
        ("\x1b(0x\x1b(B", "x"),
        ("\x9b2Jx\x9d0;t\x9cy", "xy"),
        ("a\x1b", "a␛"),
        ("\x1b]open", "open"),
        ("50%\r\x1b[K", ""),
    ],
)
def test_sequences_of_a_program_are_dropped(given: str, seen: str) -> None:
    assert render_printed(given) == seen


@pytest.mark.parametrize(
    ("parameters", "style"),
    [
        ("31", "color(1)"),
        ("1;32", "bold color(2)"),
        ("01;91", "bold color(9)"),
        ("38;5;196", "color(196)"),
        ("38:5:196", "color(196)"),
        ("38;2;1;2;3", "#010203"),
        ("38:2::1:2:3", "#010203"),
        ("44", "on color(4)"),
        ("104", "on color(12)"),
        ("4:3", "underline"),
        ("4;24;3", "italic"),
        ("1;2;22;7", "reverse"),
        ("31;44;39;49;9", "strike"),
        ("8", ""),
        ("5;6", ""),
        ("31;0", ""),
        ("", ""),
        ("38;5", ""),
        ("38;5;999", ""),
        ("31;41", ""),  # text in the colour of its background would be hidden
    ],
)
def test_colours_are_read_into_styles(parameters: str, style: str) -> None:
    (line,) = style_lines([f"\x1b[{parameters}mx"])
    assert line.plain == "x"
    assert " ".join(str(span.style) for span in line.spans) == (
        style or " ".join(["none"] * len(line.spans))
    )


def test_a_colour_lasts_over_lines_and_ends_with_its_output() -> None:
    lines = style_lines(["\x1b[31mone", "two\x1b[0m", "three"])
    assert [[str(span.style) for span in line.spans] for line in lines] == [
        ["color(1)"],
        ["color(1)"],
        [],
    ]
    data = make.notebook(
        [make.code("", [make.stream("\x1b[31mx\n"), make.stream("y\n", "stderr")])]
    )
    assert "\x1b[31mx\x1b[0m\n" in render(data, colors=True)
