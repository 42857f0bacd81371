"""The percent format of jupytext, Spyder and VS Code: a script with a `# %%` line for each cell.

Markdown and raw cells are comments, and so are the magics of IPython. A cell is known by its id, or
where the notebook has none by its source. Outputs and metadata stay in the notebook; of these only
tags and titles are in the script. Rendering and parsing give every source back exactly.
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher

from cellwright.document.snapshot import hash_cell
from cellwright.errors import InvalidCell, InvalidText
from cellwright.text.view import TextCell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot

_COMMENTS = {
    "//": ("javascript", "typescript", "java", "c", "c++", "cpp", "c#", "rust", "go", "scala"),
    "--": ("sql", "haskell", "lua"),
}
_SUFFIXES: dict[str, tuple[str, ...]] = {
    "//": (".js", ".ts", ".java", ".c", ".cpp", ".cs", ".rs", ".go", ".scala"),
    "--": (".sql", ".hs", ".lua"),
}
_MAGIC = r"(?:%%?[A-Za-z_]|!|\?)"
_option = re.compile(r"""(?:^|\s)([A-Za-z_][\w.-]*)=(?=["\[{\dtfn-])""")
_REVISION = "revision"


class PercentScript:
    """A script in the percent format: its cells, and what its head says."""

    def __init__(self, cells: list[TextCell], head: dict[str, dict[str, str]]) -> None:
        self.cells = cells
        self.head = head

    @property
    def revision(self) -> str | None:
        """The revision of the notebook that it was made from, if it says so."""
        return self.head.get("cellwright", {}).get(_REVISION)


def find_comment(language: str = "", path: str = "") -> str:
    """How a comment begins in a language, or in a file of that name."""
    for sign, languages in _COMMENTS.items():
        if language.lower() in languages or path.lower().endswith(_SUFFIXES[sign]):
            return sign
    return "#"


def to_percent(notebook: Notebook, comment: str = "#") -> str:
    """The script of a notebook.

    Raises:
        InvalidCell: a cell is broken, so the script cannot show what it contains.
    """
    blocks = [_render_head(notebook, comment)]
    for cell in notebook.cells:
        if cell.problem:
            raise InvalidCell(cell.index, cell.problem)
        marker = _render_marker(cell.type, cell.id, cell.metadata, comment)
        lines = cell.source.split("\n")
        if cell.type == "code":
            shown = [_escape(line, comment) for line in lines]
        else:
            shown = [_comment(line, comment) for line in lines]
        blocks.append("\n".join([marker, *(shown if cell.source else [])]) + "\n")
    return "\n".join(blocks)


def _render_head(notebook: Notebook, comment: str) -> str:
    rows = ["---", "jupyter:", "  cellwright:", f"    {_REVISION}: {notebook.revision}"]
    kernel = notebook.metadata.get("kernelspec")
    if isinstance(kernel, dict):
        rows.append("  kernelspec:")
        named = ((name, kernel.get(name)) for name in ("display_name", "language", "name"))
        rows += [
            f"    {name}: {json.dumps(value, ensure_ascii=False)}"
            for name, value in named
            if isinstance(value, str)
        ]
    return "".join(f"{comment} {row}\n" for row in [*rows, "---"])


def _render_marker(kind: str, cell_id: str | None, metadata: dict[str, Any], comment: str) -> str:
    words = [f"{comment} %%"]
    title, tags = metadata.get("title"), metadata.get("tags")
    if isinstance(title, str) and title.strip() == title and re.fullmatch(r"[\w ,.:;()-]+", title):
        words.append(title)
    if kind != "code":
        words.append(f"[{kind}]")
    if cell_id is not None:
        words.append(f"id={json.dumps(cell_id)}")
    if isinstance(tags, list) and tags:
        words.append(f"tags={json.dumps(tags, ensure_ascii=False)}")
    return " ".join(words)


def _escape(line: str, comment: str) -> str:
    """Comment a magic out; a comment that looks like one, or like a marker, gets one sign more."""
    return f"{comment} {line}" if _is_escaped(line, comment, 0) else line


def _unescape(line: str, comment: str) -> str:
    return line[len(comment) + 1 :] if _is_escaped(line, comment, 1) else line


def _is_escaped(line: str, comment: str, signs: int) -> bool:
    """Whether a line of code has so many signs, or more, before a magic; a marker has one more."""
    if not line.startswith((f"{comment} ", "%", "!", "?")):
        return False
    one = re.escape(f"{comment} ")
    is_magic = re.match(rf"(?:{one}){{{signs},}}{_MAGIC}", line) is not None
    return is_magic or _looks_like_marker(line, comment, signs + 1)


def _comment(line: str, comment: str) -> str:
    """Comment a line of Markdown; one that would then be a marker gets one sign more."""
    if not line:
        return comment
    more = f"{comment} " * _looks_like_marker(line, comment, 0)
    return f"{comment} {more}{line}"


def _looks_like_marker(line: str, comment: str, signs: int) -> bool:
    one = re.escape(f"{comment} ")
    return re.match(rf"(?:{one}){{{signs},}}%%+(?:\s|$)", line) is not None


# -- the way back -------------------------------------------------------------------------------


def parse_percent(text: str, comment: str = "#") -> PercentScript:
    """The cells of a script; each knows its id, its number is that of no notebook yet.

    Raises:
        InvalidText: the options of a marker are not `name=JSON`.
    """
    if text.count("\r\n") == text.count("\n"):  # saved by an editor that ends lines so
        text = text.replace("\r\n", "\n")
    lines = text.removesuffix("\n").split("\n")
    head, start = _parse_head(lines, comment)
    is_marker = re.compile(rf"{re.escape(comment)} %%+(?:\s+(.*))?$").match
    cells: list[TextCell] = []
    about: tuple[int, str] | None = None
    source: list[str] = []
    for number, line in enumerate([*lines[start:], None], start + 1):
        found = None if line is None else is_marker(line)
        if line is not None and found is None:
            source.append(line)
            continue
        if about is not None or any(each.strip() for each in source):
            is_last = line is None
            cells.append(_make_cell(about, source, comment, start + 1, is_last=is_last))
        about, source = (number, (found[1] or "") if found else ""), []
    return PercentScript(cells, head)


def _parse_head(lines: Sequence[str], comment: str) -> tuple[dict[str, dict[str, str]], int]:
    """What is in the head between two lines `# ---`, two levels deep, and where it ends."""
    fence = f"{comment} ---"
    if not lines or lines[0].rstrip() != fence:
        return {}, 0
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == fence), 0)
    found: dict[str, dict[str, str]] = {}
    part: dict[str, str] = {}
    for line in lines[1:end]:
        name, _, value = line.removeprefix(comment).partition(":")
        depth = len(name) - len(name.lstrip())
        if not value.strip():
            part = found.setdefault(name.strip(), {}) if depth <= 3 else {}
        else:
            part[name.strip()] = value.strip().strip("\"'")
    is_blank = end + 1 < len(lines) and not lines[end + 1].strip()
    return found, end + 1 + is_blank if end else 0


def _make_cell(
    about: tuple[int, str] | None, lines: list[str], comment: str, first: int, *, is_last: bool
) -> TextCell:
    number, words = about or (first, "")
    kind, cell_id, metadata = _parse_marker(words, number)
    if lines and not lines[-1].strip() and not is_last:
        lines = lines[:-1]  # the line before the next marker
    if kind == "code":
        lines = [_unescape(line, comment) for line in lines]
    elif len(lines) > 1 and lines[0].strip() in ('"""', 'r"""') and lines[-1].strip() == '"""':
        lines = lines[1:-1]
    else:
        lines = [_uncomment(line, comment) for line in lines]
    return TextCell(kind, None, "\n".join(lines), number, cell_id, metadata)


def _uncomment(line: str, comment: str) -> str:
    if line == comment:
        return ""
    bare = line.removeprefix(f"{comment} ")
    return bare.removeprefix(f"{comment} ") if _looks_like_marker(bare, comment, 1) else bare


def _parse_marker(words: str, line: int) -> tuple[str, str | None, dict[str, Any]]:
    """The type, the id and the metadata that a marker says."""
    found = _option.search(words)
    title, options = (
        (words, "") if found is None else (words[: found.start()], words[found.start() :])
    )
    kind = "code"
    for name, meaning in (("markdown", "markdown"), ("md", "markdown"), ("raw", "raw")):
        if f"[{name}]" in title:
            kind, title = meaning, title.replace(f"[{name}]", "", 1)
    metadata: dict[str, Any] = {}
    decoder = json.JSONDecoder()
    while options.strip():
        option = _option.match(options)
        if option is None:
            raise InvalidText(f"`{options.strip()[:60]}` is not name=JSON", line)
        try:
            value, end = decoder.raw_decode(options, option.end())
        except ValueError:
            raise InvalidText(f"`{options.strip()[:60]}` is not name=JSON", line) from None
        metadata[option[1]] = value
        options = options[end:]
    cell_id = metadata.pop("id", None)
    if title.strip():
        metadata["title"] = title.strip()
    return kind, cell_id if isinstance(cell_id, str) else None, metadata


def number_cells(cells: Sequence[TextCell], base: Snapshot) -> list[TextCell]:
    """The cells with the index of the cell in `base` that each is made from.

    That is the one with its id. Cells without an id in the script are paired with cells that no id
    names: those with the same source first, then those between the same neighbours. Empty lines
    that an editor added at the end of a source do not count as a change.
    """
    places = {cell_id: at for at, cell_id in enumerate(base.ids) if cell_id is not None}
    numbers = [places.get(cell.id) if cell.id is not None else None for cell in cells]
    hashes = [hash_cell(cell.type, cell.source) for cell in cells]
    taken = {number for number in numbers if number is not None}
    left = [at for at in range(len(base.ids)) if at not in taken]
    new = [at for at, number in enumerate(numbers) if number is None and cells[at].id is None]
    pairs = _pair([hashes[at] for at in new], [base.hashes[at] for at in left])
    for mine, theirs in pairs:
        numbers[new[mine]] = left[theirs]
    return [
        cell._replace(number=number, source=_settle(cell, number, base))
        for cell, number in zip(cells, numbers, strict=True)
    ]


def _pair(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and b - a == d - c):
            yield from zip(range(a, b), range(c, d), strict=True)


def _settle(cell: TextCell, number: int | None, base: Snapshot) -> str:
    """The source as it is, or as it was if only the empty lines at its end are others."""
    bare = cell.source.rstrip("\n")
    wanted = None if number is None else base.hashes[number]
    for source in (cell.source, bare, *(bare + "\n" * count for count in range(1, 4))):
        if hash_cell(cell.type, source) == wanted:
            return source
    return bare if number is None else cell.source
