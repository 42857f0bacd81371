"""Pictures: which way to draw them, and what exactly is sent."""

from __future__ import annotations

import base64
import re
from io import BytesIO, StringIO
from typing import Any

import pytest
from PIL import Image
from rich.color import ColorSystem

from cellwright.cli.render.images import (
    choose_mode,
    encode_iterm,
    encode_kitty,
    encode_sixel,
    read_picture,
)
from cellwright.cli.render.notebook import render_notebook
from cellwright.cli.render.screen import ScreenView, make_screen
from cellwright.document.notebook import Notebook
from tests.unit.cli import show_samples as make
from tests.unit.cli.show_rendering import SGR, outputs, render


def picture(value: Any, mime: str = "image/png") -> Any:
    return make.display({mime: value, "text/plain": "<Figure>"})


def plain(size: tuple[int, int], color: str = "red") -> Image.Image:
    return Image.new("RGB", size, color)


# -- which way ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "mode"),
    [
        ({}, "blocks"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "3"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"LC_TERMINAL": "iTerm2"}, "iterm"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"WEZTERM_PANE": "0"}, "iterm"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "foot-extra"}, "sixel"),
        ({"TERM": "mlterm"}, "sixel"),
        ({"TERM_PROGRAM": "Apple_Terminal"}, "blocks"),
        ({"TERM_PROGRAM": "vscode"}, "blocks"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "3"}, "blocks"),
        ({"TERM": "screen", "TERM_PROGRAM": "iTerm.app"}, "blocks"),
        ({"TMUX": "/tmp/tmux", "TERM": "xterm-kitty"}, "blocks"),  # noqa: S108
    ],
)
def test_the_environment_tells_what_a_terminal_can_draw(environ: dict[str, str], mode: str) -> None:
    assert choose_mode("auto", environ, is_terminal=True, colors=True) == mode
    # Whatever else it says, a pipe is no terminal, and without colours there is no picture.
    assert choose_mode("auto", environ, is_terminal=False, colors=True) == "blocks"
    assert choose_mode("auto", environ, is_terminal=True, colors=False) == "none"


@pytest.mark.parametrize("asked", ["kitty", "iterm", "sixel", "blocks", "none"])
def test_what_is_asked_for_is_done(asked: str) -> None:
    assert choose_mode(asked, {"TERM": "foot"}, is_terminal=True, colors=True) == asked
    assert choose_mode(asked, {"TERM": "foot"}, is_terminal=True, colors=False) == "none"


# -- half-blocks --------------------------------------------------------------------------------


def test_four_pixels_are_two_half_blocks() -> None:
    lines = outputs(picture(make.FOUR_PIXELS), colors=True, images="blocks")
    assert lines[0].endswith(
        "\x1b[38;2;255;0;0;48;2;0;0;255m▀\x1b[0m\x1b[38;2;0;255;0;48;2;255;255;255m▀\x1b[0m"
    )
    assert SGR.sub("", lines[1]).endswith("image/png, 2×2, 79 B")
    assert len(lines) == 2


def test_an_odd_row_has_no_background() -> None:
    image = Image.new("RGB", (1, 3), (1, 2, 3))
    lines = outputs(picture(make.png(image)), colors=True, images="blocks")
    assert lines[1].endswith("\x1b[38;2;1;2;3m▀\x1b[0m")


def test_a_picture_keeps_its_shape_within_the_width_and_height() -> None:
    for size in ((4000, 100), (100, 4000), (1, 1), (3, 2000)):
        lines = outputs(picture(make.png(plain(size))), width=60, colors=True, images="blocks")
        blocks = [SGR.sub("", line).count("▀") for line in lines[:-1]]
        assert max(blocks) <= 56
        assert len(blocks) <= 24


def test_transparency_is_white_paper() -> None:
    image = Image.new("RGBA", (1, 1), (0, 0, 0, 0))
    (line, _) = outputs(picture(make.png(image)), colors=True, images="blocks")
    assert "38;2;255;255;255m▀" in line


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "I;16", "CMYK"])
def test_every_kind_of_picture_is_drawn(mode: str) -> None:
    image = Image.new("RGB", (4, 4), "red").convert("L" if mode == "I;16" else mode)
    buffer = BytesIO()
    if mode == "CMYK":
        image.save(buffer, "JPEG")
    else:
        (image.convert("I").convert("I;16") if mode == "I;16" else image).save(buffer, "PNG")
    mime = "image/jpeg" if mode == "CMYK" else "image/png"
    value = base64.b64encode(buffer.getvalue()).decode()
    assert "▀" in "".join(outputs(picture(value, mime), colors=True, images="blocks"))


# -- protocols ----------------------------------------------------------------------------------


def decoded(payload: str) -> Image.Image:
    return Image.open(BytesIO(base64.b64decode(payload, validate=True)))


CELL = (10, 20)
MESSAGE = re.compile(r"\x1b_G([^;\x1b]*)(?:;([A-Za-z0-9+/=]*))?\x1b\\")
# A placeholder, with marks for its row and column and the highest byte of the picture's number.
ROW = re.compile(r"\x1b\[38;2;(\d+);(\d+);(\d+)m((?:\U0010eeee...)+)\x1b\[0m")


def messages(sent: str) -> list[tuple[dict[str, str], str]]:
    """What kitty is told, and with which data."""
    assert MESSAGE.sub("", sent) == ""
    return [(dict(re.findall(r"(\w)=(\w+)", keys)), data) for keys, data in MESSAGE.findall(sent)]


def test_kitty_is_sent_chunks_and_asked_for_no_answer() -> None:
    image = Image.effect_noise((120, 80), 90).convert("RGB")
    *chunks, (placement, _) = messages(encode_kitty(image, 12, 4, CELL)[0])
    number = placement["i"]
    assert placement == {"a": "p", "i": number, "c": "12", "r": "4", "U": "1", "q": "2"}
    assert len(chunks) > 1
    more = ["1"] * (len(chunks) - 1) + ["0"]
    assert [keys for keys, _ in chunks] == [
        {"i": number, "m": m, "f": "100", "q": "2"} for m in more
    ]
    assert all(len(data) <= 4096 for _, data in chunks)
    assert decoded("".join(data for _, data in chunks)).tobytes() == image.tobytes()


def test_the_rows_of_a_picture_carry_its_number_in_full_colour() -> None:
    sent, *rows = encode_kitty(plain((120, 80)), 12, 4, CELL)
    number = int(messages(sent)[-1][0]["i"])
    assert len(rows) == 4
    for row in rows:
        found = ROW.fullmatch(row)
        assert found
        red, green, blue = (int(part) for part in found.groups()[:3])
        assert (red << 16) + (green << 8) + blue == number & 0xFFFFFF
        assert found[4].count("\U0010eeee") == 12
    # Where colours are few, a picture's number still has to be whole.
    data = make.notebook([make.code("x", [picture(make.png(plain((20, 20))))])])
    file = StringIO()
    screen = make_screen(file, 80, colored=True)
    screen._color_system = ColorSystem.EIGHT_BIT
    for part in render_notebook(
        Notebook(data), "x", ScreenView(width=80, colors=True, images="kitty")
    ):
        screen.show(part)
    assert ROW.search(file.getvalue())


def test_iterm_is_sent_one_inline_picture() -> None:
    sent = re.fullmatch(
        r"\x1b\]1337;File=inline=1;width=12;height=4;preserveAspectRatio=1;doNotMoveCursor=1:"
        r"([A-Za-z0-9+/=]+)\x07",
        encode_iterm(plain((7, 5)), 12, 4),
    )
    assert sent
    assert decoded(sent[1]).size == (7, 5)


def unsixel(sent: str) -> list[list[tuple[int, int, int]]]:
    """A picture from its sixels, by a decoder of its own."""
    found = re.fullmatch(r'\x1bP[0-9;]*q"1;1;(\d+);(\d+)(.*)\x1b\\', sent)
    assert found
    width, height = int(found[1]), int(found[2])
    colors: dict[int, tuple[int, int, int]] = {}
    pixels = [[(-1, -1, -1)] * width for _ in range(height)]
    x = band = color = 0
    for part in re.finditer(
        r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|([$-])|([?-~])", found[3]
    ):
        if part[1]:
            color = int(part[1])
            colors[color] = (int(part[2]), int(part[3]), int(part[4]))
        elif part[5]:
            color = int(part[5])
        elif part[8]:
            x, band = 0, band + (part[8] == "-")
        else:
            count, bits = int(part[6] or 1), ord(part[7] or part[9]) - 63
            for row in range(6):
                if bits >> row & 1:
                    pixels[band * 6 + row][x : x + count] = [colors[color]] * count
            x += count
    return pixels


def test_sixels_hold_every_pixel() -> None:
    image = Image.new("RGB", (10, 20), (255, 0, 0))
    image.putpixel((2, 17), (0, 0, 255))
    image.putpixel((9, 0), (0, 255, 0))
    red, green, blue = (100, 0, 0), (0, 100, 0), (0, 0, 100)
    expected = [[red] * 10 for _ in range(20)]
    expected[17][2], expected[0][9] = blue, green
    assert unsixel(encode_sixel(image, 1, 1, CELL)) == expected


def test_a_picture_keeps_its_shape_within_its_cells() -> None:
    data = make.notebook([make.code("x", [picture(make.png(plain((33, 33))))])])
    sent = render(data, colors=True, images="kitty")
    *chunks, (placement, _) = messages("".join(found[0] for found in MESSAGE.finditer(sent)))
    assert (placement["c"], placement["r"]) == ("4", "2")
    drawn = decoded("".join(data for _, data in chunks))
    assert drawn.size == (40, 40)
    assert drawn.getbbox() == (0, 0, 33, 33)  # not stretched, and what is left is seen through
    sixels = re.search(r"\x1bP.*?\x1b\\", render(data, colors=True, images="sixel"))
    assert sixels
    rows = unsixel(sixels[0])
    assert (len(rows), len(rows[0])) == (40, 40)
    assert [row.count((100, 0, 0)) for row in rows] == [33] * 33 + [0] * 7
    assert rows[39][39] == (100, 100, 100)


def test_a_picture_for_kitty_is_lines_beside_a_margin() -> None:
    data = make.notebook([make.code("x", [picture(make.png(plain((200, 100))))])])
    text = MESSAGE.sub("", render(data, colors=True, images="kitty"))
    lines = text.partition("    x\n")[2].splitlines()[1:]
    assert len(lines) == 5
    assert [SGR.sub("", ROW.sub("", line)) for line in lines] == ["  │ "] * 5
    assert all(line.count("\U0010eeee") == 20 for line in lines)


@pytest.mark.parametrize("mode", ["iterm", "sixel"])
def test_room_is_made_first_and_the_cursor_comes_back(mode: Any) -> None:
    data = make.notebook([make.code("x", [picture(make.png(plain((200, 100))))])])
    text = render(data, colors=True, images=mode)
    rows = text.partition("    x\n")[2].partition("\x1b7")[0]
    assert SGR.sub("", rows) == "\n" + "  │\n" * 5
    assert re.search(r"\x1b7\x1b\[5A\x1b\[5G\x1b[\]P][^\n]*\x1b8\Z", text)


def test_a_picture_fits_the_room_there_is() -> None:
    data = make.notebook([make.code("x", [picture(make.png(plain((3000, 1000))))])])
    assert ",c=56,r=9," in render(data, 60, colors=True, images="kitty")
    small = render(data, 60, colors=True, images="kitty", screen_rows=6)
    assert ",c=24,r=4," in small
    strip = make.notebook([make.code("x", [picture(make.png(plain((9000, 20))))])])
    assert ",c=250,r=1," in render(strip, 900, colors=True, images="kitty")  # it numbers so many


# -- what is no picture -------------------------------------------------------------------------


def test_without_a_way_to_draw_a_picture_is_named() -> None:
    assert outputs(picture(make.FOUR_PIXELS)) == ["│ image/png, 2×2, 79 B"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "AAAA",
        "not base64 ✗",
        7,
        None,
        ["a"],
        make.CHART[:100],
        base64.b64encode(b"GIF89a").decode(),
    ],
)
@pytest.mark.parametrize("images", ["none", "blocks", "kitty"])
def test_what_is_no_picture_is_named(value: Any, images: Any) -> None:
    (line,) = outputs(picture(value), colors=images != "none", images=images)
    assert re.fullmatch(
        r"│ image/png, \d+ B, not readable|│ image/png, \d+×\d+, \d+ B", SGR.sub("", line)
    )


def test_a_picture_of_another_kind_is_not_opened() -> None:
    buffer = BytesIO()
    plain((2, 2)).save(buffer, "BMP")
    assert read_picture("image/png", base64.b64encode(buffer.getvalue()).decode()) is None


def test_a_bomb_is_not_unpacked() -> None:
    head = base64.b64decode(make.FOUR_PIXELS)
    huge = head[:16] + (60_000).to_bytes(4) * 2 + head[24:]
    assert read_picture("image/png", base64.b64encode(huge).decode()) is None


def test_a_formula_is_text_though_it_comes_as_a_picture() -> None:
    both = {"image/png": make.FOUR_PIXELS, "text/latex": "$x$", "text/plain": "x"}
    assert outputs(make.display(both), colors=True, images="blocks")[0].endswith("x")
