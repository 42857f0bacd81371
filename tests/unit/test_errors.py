"""The tree of errors is as it is drawn, and every error is fit to be shown."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pickle
import re
from typing import TYPE_CHECKING, Any

from cellwright import errors
from cellwright.config.settings import Settings
from cellwright.document.edits import EDITS
from cellwright.errors import CellwrightError
from cellwright.workspace.workspace import Book, Workspace
from tests.cases import for_each
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

Class = type[CellwrightError]

# In the order of the source.
CLASSES: list[Class] = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, CellwrightError)
]
every_error = for_each("error", CLASSES)


def draw(error: Class, before: str = "", branch: str = "") -> list[str]:
    """The class and what is below it, as the docstring has to draw them."""
    builtin = [base.__name__ for base in error.__bases__ if not issubclass(base, CellwrightError)]
    also = f"also {', '.join(builtin)}" if builtin and error is not CellwrightError else ""
    lines = [f"{before + branch + error.__name__:<35}{error.code:<25}{also}".rstrip()]
    below = [kind for kind in CLASSES if error in kind.__bases__]
    if branch:
        before += "    " if branch == "└── " else "│   "
    for kind in below:
        lines += draw(kind, before, "└── " if kind is below[-1] else "├── ")
    return lines


def test_the_tree_is_drawn_exactly_as_it_is() -> None:
    lines = (errors.__doc__ or "").splitlines()
    drawn = [line for line in lines if line.startswith(("CellwrightError", "├", "│", "└", "    "))]
    assert drawn == draw(CellwrightError)
    assert len(drawn) == len(CLASSES) > 30


def test_the_classes_stand_in_the_order_of_the_tree() -> None:
    names = [re.findall(r"\w+", line)[0] for line in draw(CellwrightError)]
    assert names == [error.__name__ for error in CLASSES]


def test_every_code_is_used_once() -> None:
    codes = [error.code for error in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", code) for code in codes)


@every_error
def test_every_error_says_what_it_means_and_has_a_code_of_its_own(error: Class) -> None:
    assert error.__doc__
    assert error.__doc__ != CellwrightError.__doc__ or error is CellwrightError
    assert "code" in vars(error)
    assert isinstance(error.retryable, bool)


@every_error
def test_a_family_ends_in_error_and_a_leaf_states_the_fact(error: Class) -> None:
    """A family is there to be caught, so that it needs no words of its own."""
    is_family = "__init__" not in vars(error) or error is CellwrightError
    assert error.__name__.endswith("Error") == is_family
    assert error.code.endswith("_ERROR") == is_family
    if is_family:
        assert error.__subclasses__()


# What an outsider may put into a message.
HOSTILE = "a\nb\r\x1b[31m\u2028c\x85\ud800"
SAMPLES: dict[str, Any] = {
    "str": HOSTILE,
    "str | None": HOSTILE,
    "int": 3,
    "int | None": 3,
    "float": 1.5,
    "float | None": 1.5,
    "object": HOSTILE,
    "bool": True,
    "Sequence[str]": (HOSTILE, "b"),
    "Sequence[int]": (1, 2),
    "Sequence[CellConflict]": (errors.CellConflict(HOSTILE, 1, HOSTILE),),
}


def instances(error: Class) -> list[CellwrightError]:
    """One of the class with all the facts there are, and one with only those it needs."""
    parameters = [
        parameter
        for parameter in list(inspect.signature(error.__init__).parameters.values())[1:]
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    made = []
    for wanted in (parameters, [p for p in parameters if p.default is p.empty]):
        unknown = {p.annotation for p in wanted} - SAMPLES.keys()
        assert not unknown, f"add a sample of {unknown} to this test"
        given = {p.name: SAMPLES[p.annotation] for p in wanted}
        positional = [given.pop(p.name) for p in wanted if p.kind is p.POSITIONAL_OR_KEYWORD]
        made.append(error(*positional, **given))
    return made


@every_error
def test_every_error_is_made_from_facts_and_is_told_in_one_line(error: Class) -> None:
    for instance in instances(error):
        for text in (str(instance), instance.message, instance.hint or "a hint"):
            assert text
            assert text.isprintable()
            assert text.splitlines() == [text]
            text.encode()  # a lone surrogate could not be printed
        assert str(instance) == instance.message
        assert instance.message[:1] not in "[("  # an OSError would begin with its number


@every_error
def test_every_error_travels_between_processes_with_its_facts(error: Class) -> None:
    for instance in instances(error):
        copy = pickle.loads(pickle.dumps(instance))  # noqa: S301
        assert type(copy) is error
        assert (str(copy), copy.hint, copy.code) == (str(instance), instance.hint, instance.code)
        facts = {name: repr(value) for name, value in vars(instance).items()}
        assert {name: repr(value) for name, value in vars(copy).items()} == facts


def test_the_base_takes_a_sentence_and_a_hint() -> None:
    error = CellwrightError("What happened", hint="What to do")
    assert (str(error), error.message, error.hint, error.code) == (
        "What happened",
        "What happened",
        "What to do",
        "INTERNAL_ERROR",
    )
    assert CellwrightError("What happened").hint is None


def test_what_a_reader_may_want_to_know_is_kept_as_facts() -> None:
    not_found = errors.CellNotFound("x", near=["y", "z"], count=3)
    assert (not_found.ref, not_found.near) == ("x", ("y", "z"))
    assert errors.AmbiguousCell("x", [1, 2]).indices == (1, 2)
    invalid = errors.InvalidJson("why", line=3, column=4)
    assert (invalid.line, invalid.column) == (3, 4)
    assert errors.InvalidEdit("why", position=2).position == 2
    assert errors.NotSaved("p", "rename", "why").step == "rename"
    conflict = errors.CellConflict("x", 1, "why", base="b", current="c", other="o")
    assert errors.Conflict("why", cells=[conflict]).cells == (conflict,)
    assert (conflict.base, conflict.current, conflict.other) == ("b", "c", "o")
    assert "b" not in repr(conflict).replace("<CellConflict", "")  # no content by accident


# --- Hints ---------------------------------------------------------------------------------------

SOURCE = ROOT / "src" / "cellwright"
# They are shown at one door only, and each door has a walk of its own.
DOORS = ("__main__.py", "acp.py", "cli", "mcp", "tools")
# What a person types at a shell, whichever door they came through.
FOR_SHELLS = (
    *("`jupyter server list`", "`uv tool install cellwright`", "`pipx install cellwright`"),
    *("pip install 'cellwright[assistant]'", "pip install 'cellwright[batch]'"),
    "pip install keyring",
)
MARKERS = ("`# %% [code]`", "`# %% [markdown] cell:3`")
SELECTORS = {"outline"}
LOW_LEVEL = {"kernel/remote/kernel.py": {"start"}}  # of a class below the workspace


def find_hints() -> Iterator[tuple[str, str]]:
    """The literal texts of hints, and the modules that have them."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE)
        if module.parts[0] not in DOORS:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                for root in _values_of_hints(node):
                    for part in ast.walk(root):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            yield module.as_posix(), part.value


def _values_of_hints(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.keyword) and node.arg == "hint":
        return [node.value]
    if isinstance(node, ast.Assign):
        names = [each.id.lower() for each in node.targets if isinstance(each, ast.Name)]
        return [node.value] if any("hint" in name for name in names) else []
    if isinstance(node, ast.FunctionDef) and ("hint" in node.name or "suggest" in node.name):
        returns = [each for each in ast.walk(node) if isinstance(each, ast.Return)]
        return [each.value for each in returns if each.value is not None]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.args if node.func.attr == "suggest_retry" else []
    return []


def test_a_hint_fits_every_door_and_what_it_names_is_there() -> None:
    """A setting, a verb of a workspace, a field of an edit; no flag, and no argument of a function."""
    fields = {field.name for kind in EDITS.values() for field in dataclasses.fields(kind)}
    verbs = {name for kind in (Workspace, Book) for name in dir(kind) if name[0] != "_"}
    known = {*fields, *verbs, *Settings.__annotations__, *SELECTORS, *("servers", "agent")}
    found = list(find_hints())
    assert len(found) > 100
    for module, text in found:
        said = text
        for words in (*FOR_SHELLS, *MARKERS):
            said = said.replace(words, "")
        assert not re.search(r"(^|\s)--?[a-z]|`cellwright |pip install", said), (module, text)
        named = set(re.findall(r"`(\w+)`|\b([a-z]+_[a-z_]+)\b", said))
        names = {one or other for one, other in named} - LOW_LEVEL.get(module, set())
        assert names <= known, (module, text)
        for variable in re.findall(r"\bCELLWRIGHT_\w+", said):
            assert variable == "CELLWRIGHT_RUNTIME_DIR"


# --- The documentation ---------------------------------------------------------------------------


def documented() -> dict[str, list[str]]:
    """The rows of every table of the reference page, by code."""
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    assert len({row[0] for row in rows}) == len(rows), "a code stands twice"
    return {row[0].strip("`"): row for row in rows}


def test_every_error_is_documented_and_nothing_else_is() -> None:
    found = {code: row[1].strip("`") for code, row in documented().items()}
    assert found == {error.code: error.__name__ for error in CLASSES}


@every_error
def test_the_documentation_says_when_whether_to_retry_and_what_to_do(error: Class) -> None:
    row = documented()[error.code]
    assert len(row) == 5
    assert all(row)
    assert row[3] == ("yes" if error.retryable else "no")
