"""Files that are not what they should be, or only just; the table behind `test_malformed`.

Most of them hold one odd thing and, after it, `PLAIN`: a cell that nothing is wrong with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.conftest import RUN_ALL

PLAIN = b'{"cell_type": "markdown", "id": "plain", "metadata": {}, "source": ["plain"]}'
OLD_PLAIN = b'{"cell_type": "markdown", "metadata": {}, "source": ["plain"]}'


@dataclass(frozen=True)
class Accepted:
    """It is read and keeps every byte.

    `cells` is how many there are. `broken` are those that are no valid cells. `own` is what
    happens when the odd cell, the first, gets another source: `ok` or the code of an error; empty
    if there is none to edit.
    """

    data: bytes
    cells: int = 2
    broken: tuple[int, ...] = ()
    own: str = "ok"


@dataclass(frozen=True)
class Refused:
    """It is refused with this code."""

    data: bytes
    code: str


@dataclass(frozen=True)
class Old:
    """It is read, but edited only after an upgrade."""

    data: bytes
    cells: int


Case = Accepted | Refused | Old


def cell(more: str | bytes = b"", source: str | bytes = b'["odd"]') -> bytes:
    """A code cell with something more in it."""
    return b"".join(
        [
            b'{"cell_type": "code", "execution_count": null, "id": "odd", "metadata": {}, ',
            b'"outputs": [], "source": ' + _bytes(source),
            b", " + _bytes(more) if more else b"",
            b"}",
        ]
    )


def bare(members: str) -> bytes:
    """A cell with these members and no others."""
    return b"{" + members.encode() + b"}"


def book(
    *cells: bytes,
    metadata: str | bytes = b"{}",
    version: str = '"nbformat": 4, "nbformat_minor": 5',
    more: str | bytes = b"",
) -> bytes:
    """A notebook with these cells and `PLAIN`."""
    plain = PLAIN if '"nbformat_minor": 5' in version else OLD_PLAIN
    listed = b",\n  ".join([*cells, plain])
    tail = b", " + _bytes(more) if more else b""
    return b'{"cells": [\n  %b\n], "metadata": %b, %b%b}\n' % (
        listed,
        _bytes(metadata),
        version.encode(),
        tail,
    )


def top(members: str | bytes) -> bytes:
    """A file with these members at the top level."""
    return b"{" + _bytes(members) + b"}"


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def styled(**options: Any) -> bytes:
    """A whole notebook as Python's json writes it."""
    value = json.loads(book(cell()))
    value["cells"][0]["outputs"] = [
        {"name": "stdout", "output_type": "stream", "text": ["a\n", "é"]}
    ]
    return json.dumps(value, **options).encode()


def short(text: str) -> str:
    """A name for a text that may be long."""
    return text if len(text) < 24 else f"{text[:8]} and so on, {len(text)} characters"


def nested(depth: int, kind: str = "[]") -> str:
    """A value in so many brackets."""
    if kind == "[]":
        return "[" * depth + "]" * depth
    return '{"k":' * depth + "1" + "}" * depth


GOOD = styled(indent=1, ensure_ascii=False)
V4 = '"nbformat": 4, "nbformat_minor": '
V3 = json.dumps(
    {
        "metadata": {"name": "old"},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "markdown", "metadata": {}, "source": ["text"]},
                    {
                        "cell_type": "code",
                        "collapsed": False,
                        "input": ["1"],
                        "language": "python",
                        "metadata": {},
                        "outputs": [],
                        "prompt_number": 1,
                    },
                ],
                "metadata": {},
            }
        ],
    }
).encode()
V2 = json.dumps(
    {
        "metadata": {"name": "older"},
        "nbformat": 2,
        "worksheets": [
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "collapsed": False,
                        "input": "1",
                        "language": "python",
                        "outputs": [],
                    }
                ]
            }
        ],
    }
).encode()

# --- How it is spelled ---------------------------------------------------------------------------

SPELLING: dict[str, Case] = {
    "a byte order mark": Accepted(b"\xef\xbb\xbf" + book(cell())),
    "a byte order mark and white space": Accepted(b"\xef\xbb\xbf \r\n\t" + book(cell())),
    "white space around": Accepted(b"\n\n \t" + book(cell()) + b"\r\n\r\n \t\n"),
    "no newline at the end": Accepted(book(cell()).rstrip()),
    "line ends of Windows": Accepted(
        book(cell()).replace(b"\n", b"\r\n").replace(b', "', b',\r\n  "')
    ),
    "line ends of an old Mac": Accepted(book(cell()).replace(b"\n", b"\r")),
    "line ends of both kinds": Accepted(book(cell()).replace(b"\n", b"\r\n", 1)),
    "tabs": Accepted(styled(indent="\t")),
    "minified": Accepted(styled(separators=(",", ":"))),
    "a space before the colon": Accepted(styled(separators=(",", " : "), indent=1)),
    "a newline before the colon": Accepted(book(cell()).replace(b'": ', b'"\n:\t')),
    "a space before the comma": Accepted(styled(separators=(" ,", ": "))),
    "escapes for what is not ASCII": Accepted(styled(ensure_ascii=True, indent=1)),
    "sorted keys": Accepted(styled(sort_keys=True, indent=1)),
    "an escaped slash": Accepted(book(cell(source=r'["a\/b"]'))),
    "upper-case escapes": Accepted(book(cell(source=r'["\u001B[0m\u00E9"]'))),
    "an escape for every letter": Accepted(book(cell(source=r'["\u006f\u0064\u0064"]'))),
    "inline lists": Accepted(book(cell('"tags": ["a","b"], "x": [1,2 , 3]'))),
    "irregular indentation": Accepted(book(cell()).replace(b", ", b",\n        ", 3)),
    "cells before and after the rest": Accepted(
        top(b'"nbformat": 4, "cells": [' + cell() + b"," + PLAIN + b'], "nbformat_minor": 5')
    ),
    "an escaped key at the top": Accepted(book(cell()).replace(b'"cells"', rb'"c\u0065lls"')),
    "escaped keys in a cell": Accepted(
        book(cell().replace(b'"source"', rb'"sourc\u0065"').replace(b'"id"', rb'"\u0069d"'))
    ),
    **{f"indented by {n}": Accepted(styled(indent=n)) for n in range(9)},
}

# --- Numbers -------------------------------------------------------------------------------------

NUMBERS: dict[str, Case] = {
    f"the number {short(text)}": Accepted(book(cell(f'"x": {text}'), metadata=f'{{"x": {text}}}'))
    for text in (
        *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0.10", "1.0", "1E+2", "-0", "-0.0"),
        *("1e-999", "123456789012345678901234567890", "0.1000000000000000055511151231257827"),
        *("9" * 5000, "-" + "9" * 5000, "0." + "1" * 5000, "1e" + "9" * 300),
    )
}
NUMBERS |= {
    f"no number: {text}": Refused(book(cell(f'"x": {text}')), "INVALID_JSON")
    for text in (
        *("01", "+1", "1.", ".5", "1e", "1e+", "0x10", "1_000", "--1", "- 1", "-", "00", "-01"),
        *("nan", "inf", "NAN", "-NaN", "+Infinity", "Infinit", "Infinityx", "1a", "1.2.3"),
    )
}

# --- Keys that stand twice -----------------------------------------------------------------------

TWICE: dict[str, Case] = {
    "cells twice": Refused(book(cell(), more='"cells": []'), "DUPLICATE_KEY"),
    "cells twice, once escaped": Refused(book(cell(), more=r'"cell\u0073": []'), "DUPLICATE_KEY"),
    "metadata twice": Refused(book(cell(), more='"metadata": {}'), "DUPLICATE_KEY"),
    "nbformat twice": Refused(book(cell(), more='"nbformat": 4'), "DUPLICATE_KEY"),
    "an unknown key twice": Refused(book(cell(), more='"x": 1, "x": 2'), "DUPLICATE_KEY"),
    "the source of a cell twice": Accepted(book(cell('"source": ["b"]')), own="DUPLICATE_KEY"),
    "the source twice, once escaped": Accepted(
        book(cell(r'"sourc\u0065": ["b"]')), own="DUPLICATE_KEY"
    ),
    "the id of a cell twice": Accepted(book(cell('"id": "b"')), own="DUPLICATE_KEY"),
    "the type of a cell twice": Accepted(book(cell('"cell_type": "raw"')), own="DUPLICATE_KEY"),
    "an unknown key of a cell twice": Accepted(book(cell('"x": 1, "x": 2')), own="DUPLICATE_KEY"),
    "a key of the metadata twice": Accepted(book(cell(), metadata='{"x": 1, "x": 2}')),
    "a key of a cell's metadata twice": Accepted(
        book(cell().replace(b'"metadata": {}', b'"metadata": {"x": 1, "x": 2}'))
    ),
    "a key of an output twice": Accepted(
        book(cell().replace(b'"outputs": []', b'"outputs": [{"x": 1, "x": 2}]'))
    ),
}

# --- Nesting -------------------------------------------------------------------------------------


def deep(depth: int, kind: str = "[]") -> dict[str, Case]:
    """So many brackets in every place that may hold them."""
    value = nested(depth, kind)
    what = f"{depth} lists" if kind == "[]" else f"{depth} objects"
    in_outputs = cell().replace(b'"outputs": []', f'"outputs": [{value}]'.encode())
    in_metadata = cell().replace(b'"metadata": {}', f'"metadata": {{"x": {value}}}'.encode())
    broken = {"broken": (0,), "own": "INVALID_CELL"}
    return {
        f"{what} in an output": Accepted(book(in_outputs)),
        f"{what} in a cell's metadata": Accepted(book(in_metadata)),
        f"{what} in the metadata": Accepted(book(cell(), metadata=f'{{"x": {value}}}')),
        f"{what} beside the cells": Accepted(book(cell(), more=f'"x": {value}')),
        f"{what} as a source": Accepted(book(cell(source=value)), **broken),  # type: ignore[arg-type]
        f"{what} as a cell": Accepted(book(value.encode()), **broken),  # type: ignore[arg-type]
    }


DEEPEST = 200_000 if RUN_ALL else 30_000

NESTING: dict[str, Case] = {
    **deep(900),
    **deep(900, "{}"),
    **deep(5_000),
    **deep(5_000, "{}"),
    # At full depth each of these takes as long as all the others together.
    f"{DEEPEST} lists in an output": deep(DEEPEST)[f"{DEEPEST} lists in an output"],
    f"{DEEPEST} lists in the metadata": deep(DEEPEST)[f"{DEEPEST} lists in the metadata"],
}
NESTING |= {
    "200000 lists and nothing else": Refused(nested(200_000).encode(), "INVALID_NOTEBOOK"),
    "200000 lists that do not end": Refused(b"[" * 200_000, "INVALID_JSON"),
    "200000 objects that do not end": Refused(b'{"a":' * 200_000, "INVALID_JSON"),
    "an old notebook of 200000 lists": Refused(
        V3.replace(b'"name": "old"', b'"name": ' + nested(200_000).encode()), "TOO_DEEP"
    ),
    "brackets that do not match": Refused(book(cell('"x": [1, 2}')), "INVALID_JSON"),
}

# --- Characters ----------------------------------------------------------------------------------

WIDE = "é中\U0001f600"
CHARACTERS: dict[str, Case] = {
    "a Latin-1 letter in a string": Refused(book(cell(source=b'["caf\xe9"]')), "NOT_UTF8"),
    "a Latin-1 letter in a key": Refused(book(cell(b'"caf\xe9": 1')), "NOT_UTF8"),
    "a Latin-1 letter between values": Refused(book(cell()) + b"\xe9", "NOT_UTF8"),
    "a surrogate as bytes": Refused(book(cell(source=b'["\xed\xa0\x80"]')), "NOT_UTF8"),
    "a pair of surrogates as bytes": Refused(
        book(cell(source=b'["\xed\xa0\xbd\xed\xb8\x80"]')), "NOT_UTF8"
    ),
    "an overlong NUL": Refused(book(cell(source=b'["\xc0\x80"]')), "NOT_UTF8"),
    "an overlong slash": Refused(book(cell(source=b'["\xe0\x80\xaf"]')), "NOT_UTF8"),
    "beyond Unicode": Refused(book(cell(source=b'["\xf4\x90\x80\x80"]')), "NOT_UTF8"),
    "a character that is cut off": Refused(book(cell()) + b"\xe4\xb8", "NOT_UTF8"),
    "bytes that only continue": Refused(b'"' + b"\x80" * 100_000 + b'"', "NOT_UTF8"),
    "UTF-16 with a mark": Refused(GOOD.decode().encode("utf-16"), "NOT_UTF8"),
    "UTF-16, big end first, with a mark": Refused(
        b"\xfe\xff" + GOOD.decode().encode("utf-16-be"), "NOT_UTF8"
    ),
    "UTF-16 without a mark": Refused(GOOD.decode().encode("utf-16-le"), "NOT_UTF8"),
    "UTF-16, big end first": Refused(GOOD.decode().encode("utf-16-be"), "NOT_UTF8"),
    "UTF-16 of ASCII without a mark": Refused(
        book(cell()).decode().encode("utf-16-le"), "INVALID_JSON"
    ),
    "UTF-16 of ASCII, big end first": Refused(
        book(cell()).decode().encode("utf-16-be"), "INVALID_JSON"
    ),
    "UTF-32 with a mark": Refused(GOOD.decode().encode("utf-32"), "NOT_UTF8"),
    "UTF-32 of ASCII without a mark": Refused(
        book(cell()).decode().encode("utf-32-le"), "INVALID_JSON"
    ),
    "UTF-32, big end first, with a mark": Refused(
        b"\0\0\xfe\xff" + GOOD.decode().encode("utf-32-be"), "NOT_UTF8"
    ),
    "two byte order marks": Refused(b"\xef\xbb\xbf" * 2 + book(cell()), "INVALID_JSON"),
    "a byte order mark between values": Refused(
        book(cell()).replace(b"[", b"[\xef\xbb\xbf", 1), "INVALID_JSON"
    ),
    "a no-break space between values": Refused(
        book(cell()).replace(b": ", b":\xc2\xa0", 1), "INVALID_JSON"
    ),
    "a line separator between values": Refused(
        book(cell()).replace(b": ", b":\xe2\x80\xa8", 1), "INVALID_JSON"
    ),
    "a form feed between values": Refused(book(cell()).replace(b": ", b":\f", 1), "INVALID_JSON"),
    "a NUL between values": Refused(book(cell()).replace(b": ", b":\0", 1), "INVALID_JSON"),
    "NULs after the end": Refused(book(cell()) + bytes(512), "INVALID_JSON"),
    "nothing but NULs": Refused(bytes(4096), "INVALID_JSON"),
    "a NUL escape in a source": Accepted(book(cell(source=r'["a\u0000b"]'))),
    "a lone high surrogate": Accepted(book(cell(source=r'["\ud800"]'))),
    "a lone low surrogate": Accepted(book(cell(source=r'["\udfff x"]'))),
    "surrogates in the wrong order": Accepted(book(cell(source=r'["\ude00\ud83d"]'))),
    "a lone surrogate in an output": Accepted(
        book(cell().replace(b'"outputs": []', rb'"outputs": ["\ud800"]'))
    ),
    "a lone surrogate in a key": Accepted(book(cell(r'"\ud800": 1'))),
    "a lone surrogate in the metadata": Accepted(book(cell(), metadata=r'{"\udc00": "\ud800"}')),
    "a lone surrogate in a key at the top": Accepted(book(cell(), more=r'"\ud800": 1')),
    "a pair of surrogates in two lines": Accepted(book(cell(source=r'["\ud83d", "\ude00"]'))),
    "wide characters on the border of a block": Accepted(
        book(cell(source=json.dumps(["x" * (16_384 - 250) + WIDE * 200], ensure_ascii=False)))
    ),
    "wide characters all over": Accepted(
        book(cell(source=json.dumps([WIDE * 10_000], ensure_ascii=False)))
    ),
    "a bad byte late in the file": Refused(
        book(cell(source=b'["' + WIDE.encode() * 10_000 + b'\xff"]')), "NOT_UTF8"
    ),
}
for _name, _character in {
    "a line separator": "\u2028",
    "a paragraph separator": "\u2029",
    "a next line": "\x85",
    "a delete": "\x7f",
    "a zero-width joiner": "\u200d",
    "a right-to-left override": "\u202e",
    "a byte order mark": "\ufeff",
    "a noncharacter": "\uffff",
}.items():
    CHARACTERS[f"{_name} in a source"] = Accepted(
        book(cell(source=json.dumps([f"a{_character}b\n", "c"], ensure_ascii=False)))
    )
for _name, _escape in {
    "a form feed": r"\f",
    "a vertical tab": r"\u000b",
    "a carriage return": r"\r",
    "a carriage return and a line feed": r"\r\n",
    "an escape sequence": r"\u001b[31m",
    "a backspace": r"\b",
    "a next line as an escape": r"\u0085",
}.items():
    CHARACTERS[f"{_name} in a source"] = Accepted(book(cell(source=f'["a{_escape}b\\n", "c"]')))
for _name, _byte in {
    "NUL": b"\0",
    "tab": b"\t",
    "line feed": b"\n",
    "carriage return": b"\r",
    "escape": b"\x1b",
    "unit separator": b"\x1f",
}.items():
    CHARACTERS |= {
        f"a raw {_name} in a source": Refused(
            book(cell(source=b'["a' + _byte + b'b"]')), "INVALID_JSON"
        ),
        f"a raw {_name} in an output": Refused(
            book(cell().replace(b'"outputs": []', b'"outputs": ["' + _byte + b'"]')),
            "INVALID_JSON",
        ),
        f"a raw {_name} in a key": Refused(book(cell(b'"a' + _byte + b'b": 1')), "INVALID_JSON"),
    }
for _escape in (r"\x41", r"\u12", r"\u12G4", r"\U0001F600", r"\'", r"\ ", r"\0", r"\a", r"\u+123"):
    CHARACTERS |= {
        f"the escape {_escape} in a source": Refused(
            book(cell(source=f'["{_escape}"]')), "INVALID_JSON"
        ),
        f"the escape {_escape} in an output": Refused(
            book(cell().replace(b'"outputs": []', f'"outputs": ["{_escape}"]'.encode())),
            "INVALID_JSON",
        ),
    }

# --- Not JSON ------------------------------------------------------------------------------------

NOT_JSON: dict[str, Case] = {
    "an empty file": Refused(b"", "INVALID_JSON"),
    "white space only": Refused(b" \n\t\r\n ", "INVALID_JSON"),
    "a byte order mark only": Refused(b"\xef\xbb\xbf", "INVALID_JSON"),
    "plain text": Refused(b"hello", "INVALID_JSON"),
    "Python": Refused(b"import json\nprint(1)\n", "INVALID_JSON"),
    "XML": Refused(b"<?xml version='1.0'?><a/>", "INVALID_JSON"),
    "a PNG": Refused(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "NOT_UTF8"),
    "gzip": Refused(b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "NOT_UTF8"),
    "a pointer of Git LFS": Refused(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "INVALID_JSON"
    ),
    "the marks of a merge conflict": Refused(
        GOOD.replace(b'"outputs"', b'<<<<<<< HEAD\n"outputs"', 1), "INVALID_JSON"
    ),
    "garbage after the end": Refused(book(cell()) + b"x", "INVALID_JSON"),
    "a bracket after the end": Refused(book(cell()) + b"}", "INVALID_JSON"),
    "a comma after the end": Refused(book(cell()) + b",", "INVALID_JSON"),
    "two notebooks": Refused(book(cell()) * 2, "INVALID_JSON"),
    "lines of JSON": Refused(b'{"a": 1}\n{"a": 2}\n', "INVALID_JSON"),
    "a comment at the start": Refused(b"// hello\n" + book(cell()), "INVALID_JSON"),
    "a comment inside": Refused(book(cell()).replace(b"[", b"[ /* x */", 1), "INVALID_JSON"),
    "a comment of Python's": Refused(book(cell()).replace(b"[", b"[ # x\n", 1), "INVALID_JSON"),
    "single quotes": Refused(book(cell()).replace(b'"', b"'"), "INVALID_JSON"),
    "a key without quotes": Refused(book(cell("x: 1")), "INVALID_JSON"),
    "a key that is a number": Refused(book(cell("1: 1")), "INVALID_JSON"),
    "a key without a value": Refused(book(cell('"x"')), "INVALID_JSON"),
    "a key with a colon and no value": Refused(book(cell('"x":')), "INVALID_JSON"),
    "two colons": Refused(book(cell('"x":: 1')), "INVALID_JSON"),
    "no comma between members": Refused(book(cell('"x": 1 "y": 2')), "INVALID_JSON"),
    "no comma between cells": Refused(book(cell()).replace(b",\n  ", b"\n  "), "INVALID_JSON"),
    "two commas": Refused(book(cell('"x": 1,, "y": 2')), "INVALID_JSON"),
    "a comma before the first": Refused(book(cell()).replace(b"[\n", b"[,\n", 1), "INVALID_JSON"),
    "a comma after the last cell": Refused(book(cell()).replace(b"\n]", b",\n]"), "INVALID_JSON"),
    "a comma after the last member": Refused(book(cell('"x": 1,')), "INVALID_JSON"),
    "a comma after the last line": Refused(book(cell(source='["a",]')), "INVALID_JSON"),
    "a comma after all": Refused(book(cell())[:-2] + b",}", "INVALID_JSON"),
    "Python's words": Refused(book(cell('"x": None, "y": True')), "INVALID_JSON"),
    "undefined": Refused(book(cell('"x": undefined')), "INVALID_JSON"),
    "a word that is longer than it may": Refused(book(cell('"x": truex')), "INVALID_JSON"),
    "a word in capitals": Refused(book(cell('"x": True')), "INVALID_JSON"),
    "a string that does not end": Refused(book(cell('"x": "abc')), "INVALID_JSON"),
    "a string that ends in a backslash": Refused(b'{"a": "b\\', "INVALID_JSON"),
    "only an opening quote": Refused(b'"', "INVALID_JSON"),
    "a million quotes": Refused(b'"' * 999_999, "INVALID_JSON"),
    "a million backslashes": Refused(b'{"a": "' + b"\\" * 1_000_000, "INVALID_JSON"),
    "a million escapes": Accepted(book(cell(source=r'["' + r"\n" * 1_000_000 + '"]'))),
    "a million spaces": Accepted(book(cell()).replace(b": ", b":" + b" " * 1_000_000, 1)),
    "a million commas": Refused(b"[" + b"," * 1_000_000, "INVALID_JSON"),
}

# --- Not a notebook ------------------------------------------------------------------------------

NO_NOTEBOOK: dict[str, Case] = {
    f"{text} alone": Refused(text.encode(), "INVALID_NOTEBOOK")
    for text in ("null", "true", "1", "-1.5", '"text"', "[]", "[{}]", "NaN")
}
NO_NOTEBOOK |= {
    "an empty object": Refused(b"{}", "INVALID_NOTEBOOK"),
    "another kind of file": Refused(b'{"name": "x", "version": "1"}', "INVALID_NOTEBOOK"),
    "no cells": Refused(
        top('"metadata": {}, "nbformat": 4, "nbformat_minor": 5'), "INVALID_NOTEBOOK"
    ),
    "no version": Refused(top(b'"cells": [' + PLAIN + b'], "metadata": {}'), "INVALID_NOTEBOOK"),
    **{
        f"cells that are {value}": Refused(top(f'"cells": {value}, {V4}5'), "INVALID_NOTEBOOK")
        for value in ("null", "{}", '"x"', "3", "true", '{"0": {}}')
    },
    "the key of cells in capitals": Refused(top(f'"Cells": [], {V4}5'), "INVALID_NOTEBOOK"),
    "cells that stand deeper": Refused(
        top(f'"notebook": {{"cells": []}}, {V4}5'), "INVALID_NOTEBOOK"
    ),
    "no cell at all": Accepted(top(f'"cells": [], "metadata": {{}}, {V4}5'), cells=0, own=""),
    "no metadata": Accepted(top(b'"cells": [%b, %b], %b5' % (cell(), PLAIN, V4.encode()))),
    **{
        f"metadata that are {value}": Accepted(book(cell(), metadata=value))
        for value in ("null", "[]", '"x"', "3", "[[1]]")
    },
    **{
        f"a kernelspec that is {value}": Accepted(
            book(cell(), metadata=f'{{"kernelspec": {value}}}')
        )
        for value in ('"python3"', "null", "[]", "{}", '{"name": 3}')
    },
    "language_info that is a string": Accepted(book(cell(), metadata='{"language_info": "py"}')),
    "unknown members at the top": Accepted(book(cell(), more='"x": [1], "signature": "sha"')),
    "an empty key at the top": Accepted(book(cell(), more='"": 1')),
}

# --- Versions ------------------------------------------------------------------------------------


def version(major: str, minor: str = "5") -> bytes:
    return book(cell(), version=f'"nbformat": {major}, "nbformat_minor": {minor}')


VERSIONS: dict[str, Case] = {
    **{
        f"nbformat 4.{minor}": Accepted(
            book(cell().replace(b'"id": "odd", ', b""), version=f"{V4}{minor}")
        )
        for minor in range(5)
    },
    "nbformat 4.5": Accepted(version("4", "5")),
    "nbformat 4.6": Accepted(version("4", "6")),
    "nbformat 4.99": Accepted(version("4", "99")),
    "ids in nbformat 4.4": Accepted(version("4", "4")),
    "no minor version": Accepted(book(cell(), version='"nbformat": 4')),
    "a minor version that is null": Accepted(version("4", "null")),
    **{
        f"nbformat {major}": Refused(version(major), "UNSUPPORTED_VERSION")
        for major in ("0", "1", "5", "6", "99999")
    },
    **{
        f"nbformat {short(value)}": Refused(version(value), "INVALID_NOTEBOOK")
        for value in ('"4"', "4.0", "4e0", "-4", "null", "true", "[4]", "{}", "NaN", "9" * 30)
    },
    **{
        f"nbformat 4 and minor {short(value)}": Refused(version("4", value), "INVALID_NOTEBOOK")
        for value in ('"5"', "5.0", "-1", "[]", "true", "9" * 30, "9" * 5000)
    },
    "nbformat 3": Old(V3, 2),
    "nbformat 3 with a byte order mark": Old(b"\xef\xbb\xbf" + V3, 2),
    "nbformat 3 with line ends of Windows": Old(V3.replace(b", ", b",\r\n"), 2),
    "nbformat 3 with no worksheets": Old(top('"metadata": {}, "nbformat": 3'), 0),
    "nbformat 3 with two worksheets": Old(
        V3.replace(b'"worksheets": [', b'"worksheets": [{"cells": [], "metadata": {}}, '), 2
    ),
    "nbformat 3 with a lone surrogate": Old(V3.replace(b'"text"', rb'"\ud800"'), 2),
    "nbformat 3 with a number beyond limits": Old(
        V3.replace(b'"name": "old"', b'"name": "old", "x": ' + b"9" * 5000), 2
    ),
    "nbformat 2": Old(V2, 1),
    **{
        f"nbformat 3 with worksheets that are {value}": Refused(
            top(f'"metadata": {{}}, "nbformat": 3, "worksheets": {value}'), "INVALID_NOTEBOOK"
        )
        for value in ("3", '"x"', "[3]", '[{"cells": 3}]', '[{"cells": [3]}]', '[{"cells": [{}]}]')
    },
    "nbformat 3 with the shape of 4": Old(book(cell(), version='"nbformat": 3'), 0),
    "nbformat 4 with the shape of 3": Refused(
        V3.replace(b'"nbformat": 3', b'"nbformat": 4'), "INVALID_NOTEBOOK"
    ),
}

# --- Cells ---------------------------------------------------------------------------------------

BROKEN = {"broken": (0,), "own": "INVALID_CELL"}
CELLS: dict[str, Case] = {
    **{
        f"a cell that is {value}": Accepted(book(value.encode()), **BROKEN)  # type: ignore[arg-type]
        for value in ("null", "3", '"text"', "[]", "true", "{}", "NaN", '""', "[{}]")
    },
    "several cells that are none": Accepted(
        book(b"1", b"null", b'"x"'), cells=4, broken=(0, 1, 2), own="INVALID_CELL"
    ),
    "no source": Accepted(
        book(bare('"cell_type": "code", "id": "a", "metadata": {}, "outputs": []')),
        **BROKEN,  # type: ignore[arg-type]
    ),
    **{
        f"a source that is {value}": Accepted(book(cell(source=value)), **BROKEN)  # type: ignore[arg-type]
        for value in ("null", "3", "true", "{}", "[1, 2]", '["a", 1]', '[["a"]]', "[null]", "NaN")
    },
    "an empty source": Accepted(book(cell(source="[]"))),
    "an empty string as source": Accepted(book(cell(source='""'))),
    "a source in one string": Accepted(book(cell(source=r'"a\nb"'))),
    "empty lines in a source": Accepted(book(cell(source=r'["", "a", "", "\n", ""]'))),
    "lines of a source split anywhere": Accepted(book(cell(source=r'["a", "b\nc\n", "d\n\n"]'))),
    "no type": Accepted(
        book(bare('"id": "a", "metadata": {}, "source": []')),
        **BROKEN,  # type: ignore[arg-type]
    ),
    **{
        f"a type that is {value}": Accepted(
            book(bare(f'"cell_type": {value}, "id": "a", "metadata": {{}}, "source": []')),
            **BROKEN,  # type: ignore[arg-type]
        )
        for value in ('"heading"', '"Code"', '""', "null", "3", '["code"]', '"code "', '"unknown"')
    },
    "no metadata in a cell": Accepted(book(bare('"cell_type": "raw", "id": "a", "source": []'))),
    **{
        f"a cell's metadata that are {value}": Accepted(
            book(bare(f'"cell_type": "raw", "id": "a", "metadata": {value}, "source": []'))
        )
        for value in ("null", "[]", '"x"')
    },
    **{
        f"outputs that are {value}": Accepted(
            book(cell().replace(b'"outputs": []', b'"outputs": ' + value.encode()))
        )
        for value in ("null", "{}", '"x"', "[null, 3]", '[{"output_type": "pyout"}]', "[[]]")
    },
    "no outputs": Accepted(book(cell().replace(b'"outputs": [], ', b""))),
    "an execution count that is a string": Accepted(
        book(cell().replace(b'"execution_count": null', b'"execution_count": "1"'))
    ),
    "outputs in a text cell": Accepted(
        book(cell().replace(b'"code"', b'"markdown"')),
    ),
    "unknown members in a cell": Accepted(book(cell('"x": {"y": [1]}, "collapsed": true'))),
    "an empty key in a cell": Accepted(book(cell('"": 1'))),
}

# --- Ids -----------------------------------------------------------------------------------------


def with_id(value: str) -> bytes:
    return cell().replace(b'"odd", "metadata"', value.encode() + b', "metadata"')


IDS: dict[str, Case] = {
    **{
        f"an id that is {short(value)}": Accepted(book(with_id(value)))
        for value in (
            *("3", "null", "[]", "{}", "true", '""', '" "', '"a b"', '"ä"', '"a/b"', '"\\u0000"'),
            *('"' + "x" * 64 + '"', '"' + "x" * 65 + '"', '"' + "x" * 100_000 + '"', '"\\ud800"'),
            *('"0"', '"1"', '"-1"', '"cell-1"', '"cell-0"', '"a\\nb"', '"9"'),
        )
    },
    "no id": Accepted(book(cell().replace(b'"id": "odd", ', b""))),
    "an id that two cells have": Accepted(book(cell(), cell()), cells=3),
    "an id that a hundred cells have": Accepted(book(*[cell()] * 100), cells=101),
}

CASES: dict[str, Case] = {
    **SPELLING,
    **NUMBERS,
    **TWICE,
    **NESTING,
    **CHARACTERS,
    **NOT_JSON,
    **NO_NOTEBOOK,
    **VERSIONS,
    **CELLS,
    **IDS,
}
