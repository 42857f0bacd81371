"""Git shows and merges notebooks by cell, once the drivers are installed; with a real git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from cellwright import Notebook
from tests.conftest import require_tool
from tests.unit.cli import samples
from tests.unit.cli.calling import Answer, call, process, succeed

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "analysis.ipynb"
CRLF = samples.SALES.replace(b"\n", b"\r\n")
NO_IDS = samples.write(
    samples.markdown(None, "# Sales"),
    samples.code(None, "total = 42\nprint(total)", samples.STREAM, count=1),
    samples.code(None, "total"),
    samples.code(None, "# the end"),
    minor=4,
)


class Repo:
    """A repository of a user who has nothing but what the machine gives everybody."""

    def __init__(self, folder: Path, template: Path | None = None) -> None:
        self.folder = folder
        self.file = folder / NAME
        if template is None:
            self.git("init", "--quiet", "--initial-branch=main", "--template=")
        else:
            shutil.copytree(template / ".git", folder / ".git")

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [require_tool("git"), *words],
            cwd=self.folder,
            env=environment(),
            input=stdin,
            capture_output=True,
            timeout=100,
            check=False,
        )

    def git(self, *words: str, stdin: bytes = b"") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done
        return done.stdout.decode()

    def commits(self, *commits: tuple[str, str | None, bytes], name: str = NAME) -> None:
        """Make commits, each on a branch, from another if one is given; then check out main."""
        stream = []
        for branch, start, data in commits:
            stream += [
                f"commit refs/heads/{branch}\ncommitter Ada <ada@example.invalid> 0 +0000\n",
                f"data 1\nx\n{f'from refs/heads/{start}{chr(10)}' if start else ''}",
                f"M 100644 inline {json.dumps(name, ensure_ascii=False)}\ndata {len(data)}\n",
                data,
                "\n",
            ]
        whole = b"".join(part if isinstance(part, bytes) else part.encode() for part in stream)
        self.git("fast-import", "--quiet", "--force", stdin=whole)
        self.git("reset", "--quiet", "--hard", "main")

    def merge(
        self, base: bytes | None, ours: bytes, theirs: bytes, name: str = NAME
    ) -> subprocess.CompletedProcess[bytes]:
        """Merge what two branches made of a base, or of nothing."""
        if base is None:
            self.commits(("main", None, ours), ("theirs", None, theirs), name=name)
            return self.run("merge", "--no-edit", "--allow-unrelated-histories", "theirs")
        self.commits(
            ("base", None, base), ("main", "base", ours), ("theirs", "base", theirs), name=name
        )
        return self.run("merge", "--no-edit", "theirs")

    @property
    def status(self) -> str:
        return self.git("status", "--porcelain")


def environment() -> dict[str, str]:
    """What git gets: nothing of the machine's settings, and no PATH that leads to us."""
    own = str(Path(sys.executable).parent)
    path = [part for part in os.environ["PATH"].split(os.pathsep) if part != own]
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.invalid"))
    }
    return {**os.environ, **who, "PATH": os.pathsep.join(path), "GIT_PAGER": "cat"}


@pytest.fixture
def quiet_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet_git: None) -> Repo:  # noqa: ARG001
    """A repository without the drivers."""
    monkeypatch.chdir(tmp_path)
    return Repo(tmp_path)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the drivers, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("HOME", str(folder))
        Repo(folder)
        patch.chdir(folder)
        succeed("git", "install")
    return folder


@pytest.fixture
def repo(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet_git: None) -> Repo:  # noqa: ARG001
    """A repository with the drivers."""
    monkeypatch.chdir(tmp_path)
    return Repo(tmp_path, template)


def edited(data: bytes, *edits: dict[str, Any]) -> bytes:
    notebook = Notebook(data)
    notebook.apply(edits)
    return notebook.to_bytes()


def replaced(data: bytes, cell: str | int, source: str) -> bytes:
    return edited(data, {"op": "replace", "cell": cell, "source": source})


def inserted(data: bytes, source: str, **more: Any) -> bytes:
    return edited(data, {"op": "insert", "source": source, **more})


def sources(data: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(data)["cells"]]


def assert_valid(data: bytes) -> None:
    nbformat.validate(nbformat.reads(data.decode("utf-8-sig"), as_version=4))


# --- Setting up ----------------------------------------------------------------------------------


def snapshot(*folders: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    "attributes",
    [None, b"", b"*.txt text\n", b"*.txt text", b"*.txt text\r\n", b"# caf\xe9\x0c x\n\n"],
    ids=["none", "empty", "some", "no newline", "CRLF", "no UTF-8"],
)
@pytest.mark.parametrize("everywhere", [False, True], ids=["local", "global"])
def test_uninstall_takes_away_exactly_what_install_added(
    attributes: bytes | None, everywhere: bool, bare: Repo, places: Path
) -> None:
    scope = ["--global"] if everywhere else []
    bare.git("config", *(scope or ["--local"]), "diff.other.textconv", "cat")
    place = (
        places / "config" / "git" / "attributes"
        if everywhere
        else bare.folder / ".git" / "info" / "attributes"
    )
    if attributes is not None:
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(attributes)
    before = snapshot(bare.folder / ".git", places / "config", places / "home")
    if attributes == b"":
        before.pop(str(place))  # an empty file is as good as none
    succeed("git", "install", *scope)
    assert b"*.ipynb diff=cellwright merge=cellwright" in place.read_bytes()
    assert place.read_bytes().startswith(attributes or b"")
    succeed("git", "install", *scope)  # twice is once
    succeed("git", "uninstall", *scope)
    assert snapshot(bare.folder / ".git", places / "config", places / "home") == before
    succeed("git", "uninstall", *scope)


def test_only_notebooks_get_the_drivers(repo: Repo) -> None:
    shown = repo.git("check-attr", "diff", "merge", "--", NAME, "sub/b.ipynb", "code.py")
    assert shown.splitlines() == [
        f"{NAME}: diff: cellwright",
        f"{NAME}: merge: cellwright",
        "sub/b.ipynb: diff: cellwright",
        "sub/b.ipynb: merge: cellwright",
        "code.py: diff: unspecified",
        "code.py: merge: unspecified",
    ]
    assert repo.status == ""


@pytest.mark.usefixtures("bare")
def test_the_doctor_tells_whether_the_drivers_are_there() -> None:
    assert succeed("doctor", "--json").data["git"] == "drivers not installed here"
    succeed("git", "install")
    assert succeed("doctor", "--json").data["git"] == "drivers installed"


def test_a_global_install_serves_every_repository(bare: Repo, tmp_path: Path) -> None:
    succeed("git", "install", "--global")
    (tmp_path / "second").mkdir()
    second = Repo(tmp_path / "second")
    for repo in (bare, second):
        assert "cellwright" in repo.git("check-attr", "merge", NAME)
        ours, theirs = replaced(samples.SALES, "sum", "x"), replaced(samples.SALES, "load", "y")
        assert repo.merge(samples.SALES, ours, theirs).returncode == 0


def test_a_global_install_uses_the_attributes_file_of_the_user(bare: Repo, places: Path) -> None:
    own = places / "home" / "my attributes"
    own.write_text("*.md text\n", encoding="utf-8")
    bare.git("config", "--global", "core.attributesFile", "~/my attributes")
    answer = succeed("git", "install", "--global", "--json")
    assert answer.data["attributes"] == str(own)
    assert own.read_text(encoding="utf-8").startswith("*.md text\n*.ipynb ")


def test_install_works_from_a_folder_below(bare: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare.folder / "sub").mkdir()
    monkeypatch.chdir(bare.folder / "sub")
    succeed("git", "install")
    assert "cellwright" in bare.git("check-attr", "merge", "sub/x.ipynb")


def test_install_outside_a_repository_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tool("git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    answer: Answer = call("git", "install", "--json")
    assert (answer.code, answer.error["code"]) == (2, "USAGE")


# --- Showing -------------------------------------------------------------------------------------


def test_git_diff_shows_the_text_of_cells(repo: Repo) -> None:
    repo.commits(("main", None, samples.SALES))
    repo.file.write_bytes(replaced(samples.SALES, "load", "total = 43\nprint(total)"))
    lines = repo.git("diff").splitlines()
    assert "-total = 42" in lines
    assert "+total = 43" in lines
    assert " # %% [code] load" in lines
    assert not any('"source"' in line or '"cell_type"' in line for line in lines)
    repo.git("commit", "--all", "--quiet", "--message", "y")
    assert "+total = 43" in repo.git("show")
    assert "+total = 43" in repo.git("log", "--patch", "-1")


def changed_lines(repo: Repo) -> list[str]:
    body = [line for line in repo.git("diff").splitlines() if line[:1] in ("-", "+")]
    return [line for line in body if not line.startswith(("---", "+++"))]


def test_git_diff_shows_outputs_in_brief_and_no_numbers(repo: Repo) -> None:
    flood = {**samples.STREAM, "text": [f"{number}\n" for number in range(100)]}
    base = samples.write(
        samples.code("a", "x", samples.STREAM, count=1), samples.code("b", "y", flood, count=2)
    )
    repo.commits(("main", None, base))
    repo.file.write_bytes(inserted(base, "new", id="new", before="a").replace(b"42", b"43"))
    assert changed_lines(repo) == ["+# %% [code] new", "+new", "-│ 42", "+│ 43"]
    repo.file.write_bytes(base.replace(b'"execution_count": 1', b'"execution_count": 7'))
    assert changed_lines(repo) == []
    repo.file.write_bytes(edited(base, {"op": "clear_outputs", "cells": ["b"]}))
    assert changed_lines(repo)[-1] == "-│ … 95 more lines"


# --- Without outputs -------------------------------------------------------------------------------


def test_notebooks_are_stored_without_outputs_and_no_other_byte_changes(bare: Repo) -> None:
    succeed("git", "install", "--strip", "--strip-key", "metadata.language_info.version")
    value = json.loads(samples.SALES)
    value["metadata"]["language_info"] = {"name": "python", "version": "3.14.1"}
    value["cells"][2]["metadata"] = {"scrolled": True, "tags": ["a"]}
    value["cells"][4]["metadata"] = {"tags": ["keep_output"]}
    data = json.dumps(value, indent=3).encode()
    bare.file.write_bytes(data)
    bare.git("add", NAME)
    stored = json.loads(bare.git("show", f":{NAME}"))
    assert bare.file.read_bytes() == data  # ours keeps its outputs
    assert [cell.get("execution_count") for cell in stored["cells"]] == [None] * 4 + [4, None, None]
    assert [len(cell.get("outputs", [])) for cell in stored["cells"]] == [0, 0, 0, 0, 1, 0, 0]
    assert stored["cells"][2]["metadata"] == {"tags": ["a"]}
    assert stored["metadata"]["language_info"] == {"name": "python"}
    assert b'   "cells": [' in bare.run("show", f":{NAME}").stdout  # indented as it was
    bare.git("commit", "--quiet", "--message", "x")
    assert bare.status == ""  # and stays clean, whatever is run
    bare.file.write_bytes(edited(data, {"op": "clear_outputs"}))
    bare.file.write_bytes(data)
    assert bare.status == ""
    stripped = bare.run("show", f"HEAD:{NAME}").stdout
    bare.file.write_bytes(stripped)
    bare.git("add", NAME)
    assert bare.run("show", f":{NAME}").stdout == stripped  # nothing is left to strip
    succeed("git", "uninstall")
    assert "filter: unspecified" in bare.git("check-attr", "filter", NAME)
    assert call("git", "install", "--strip-key", "x").code == 2


def test_what_is_not_stored_is_in_no_diff(bare: Repo) -> None:
    succeed("git", "install", "--strip")
    value = json.loads(samples.SALES)
    value["cells"][4]["metadata"] = {"tags": ["keep_output"]}
    data = json.dumps(value).encode()
    bare.file.write_bytes(edited(data, {"op": "clear_outputs"}))
    bare.git("add", NAME)
    bare.git("commit", "--quiet", "--message", "x")
    bare.file.write_bytes(edited(data, {"op": "replace", "cell": 0, "source": "# Other"}))
    lines = bare.git("diff", "-U99").splitlines()
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert "+# Other" in changed
    shown = [line for line in changed if line[1:2] == "│"]
    assert shown, "a cell that keeps its outputs shows them"
    cells = "\n".join(lines).split("# %% [")
    assert [number for number, cell in enumerate(cells[1:]) if "│" in cell] == [4]


def test_what_is_no_notebook_is_stored_as_it_is(bare: Repo) -> None:
    succeed("git", "install", "--strip")
    bare.file.write_bytes(b"{ not json")
    bare.git("add", NAME)
    assert bare.run("show", f":{NAME}").stdout == b"{ not json"


def test_a_notebook_without_outputs_is_stored_to_the_byte(bare: Repo) -> None:
    succeed("git", "install", "--strip")
    data = edited(CRLF, {"op": "clear_outputs"})
    bare.file.write_bytes(data)
    bare.git("add", NAME)
    assert bare.run("show", f":{NAME}").stdout == data


def test_git_diff_shows_a_broken_notebook_as_the_file_it_is(repo: Repo) -> None:
    repo.commits(("main", None, samples.SALES))
    broken = samples.SALES[:-4] + b"caf\xe9 <<<"
    repo.file.write_bytes(broken)
    done = repo.run("diff")
    assert done.returncode == 0
    assert b"+{" in done.stdout
    assert b"caf\\xe9 <<<" in done.stdout
    assert done.stderr == b""


def test_textconv_of_a_broken_cell_or_a_missing_file_is_no_traceback(repo: Repo) -> None:
    value = json.loads(samples.SALES)
    value["cells"][0] = 7
    repo.file.write_text(json.dumps(value), encoding="utf-8")
    answer = process("git", "textconv", NAME)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == repo.file.read_bytes()
    missing = process("git", "textconv", "nowhere.ipynb")
    assert missing.code != 0
    assert "Traceback" not in missing.err


# --- Merging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [samples.SALES, CRLF], ids=["LF", "CRLF"])
def test_edits_of_different_cells_merge_cleanly(base: bytes, repo: Repo) -> None:
    done = repo.merge(base, replaced(base, "sum", "ours"), replaced(base, "load", "theirs"))
    assert done.returncode == 0
    merged = repo.file.read_bytes()
    assert merged == replaced(replaced(base, "sum", "ours"), "load", "theirs")
    assert_valid(merged)
    assert repo.status == ""


def test_neighbours_that_a_line_merge_would_fight_over_merge_cleanly(repo: Repo) -> None:
    """Added at one place on both sides, and the cell before it edited."""
    ours = inserted(samples.SALES, "ours", id="ours", after="load")
    theirs = inserted(samples.SALES, "theirs", id="theirs", after="load")
    theirs = replaced(theirs, "load", "edited")
    assert repo.merge(samples.SALES, ours, theirs).returncode == 0
    merged = repo.file.read_bytes()
    found = sources(merged)
    assert set(found) >= {"ours", "theirs", "edited"}
    assert len(found) == 9
    assert found.index("edited") == 1
    assert_valid(merged)


def test_moves_deletions_and_metadata_merge_cleanly(repo: Repo) -> None:
    ours = edited(
        samples.SALES,
        {"op": "move", "cell": "notes", "at": 0},
        {"op": "set_metadata", "metadata": {"ours": 1}},
    )
    theirs = edited(
        samples.SALES,
        {"op": "delete", "cell": "later"},
        {"op": "set_metadata", "metadata": {"theirs": 2}},
        {"op": "set_metadata", "cell": "sum", "metadata": {"tags": ["t"]}},
    )
    assert repo.merge(samples.SALES, ours, theirs).returncode == 0
    merged = json.loads(repo.file.read_bytes())
    assert [cell["id"] for cell in merged["cells"]] == [
        *("notes", "intro", "load", "sum", "results", "plot")
    ]
    assert (merged["metadata"]["ours"], merged["metadata"]["theirs"]) == (1, 2)
    assert merged["cells"][3]["metadata"] == {"tags": ["t"]}
    assert_valid(repo.file.read_bytes())


def test_outputs_never_conflict(repo: Repo) -> None:
    ours = samples.SALES.replace(b'"42"', b'"ours"')
    theirs = samples.SALES.replace(b'"42"', b'"theirs"')
    assert repo.merge(samples.SALES, ours, theirs).returncode == 0
    assert repo.file.read_bytes() == ours


@pytest.mark.parametrize("base", [samples.SALES, CRLF], ids=["LF", "CRLF"])
def test_a_conflict_is_marked_inside_its_cell_and_the_notebook_stays_valid(
    base: bytes, repo: Repo
) -> None:
    ours = replaced(replaced(base, "sum", "ours 1\n\nours 2"), "intro", "# Ours")
    theirs = replaced(replaced(base, "sum", "theirs"), "load", "theirs too")
    done = repo.merge(base, ours, theirs)
    assert done.returncode == 1
    assert f"UU {NAME}" in repo.status
    assert b"sum" in done.stdout + done.stderr
    merged = repo.file.read_bytes()
    assert_valid(merged)
    found = sources(merged)
    assert found[2].splitlines() == [
        *("<<<<<<< main", "ours 1", "", "ours 2", "=======", "theirs", ">>>>>>> theirs")
    ]
    assert found[:2] == ["# Ours", "theirs too"]
    assert (b"\r\n" in merged) == (b"\r\n" in base)


def test_a_conflict_is_resolved_by_editing_the_cell(repo: Repo) -> None:
    repo.merge(
        samples.SALES, replaced(samples.SALES, "sum", "a"), replaced(samples.SALES, "sum", "b")
    )
    succeed("edit", NAME, "replace", "sum", "a + b")
    repo.git("add", NAME)
    repo.git("commit", "--quiet", "--no-edit")
    assert repo.status == ""
    assert sources(repo.file.read_bytes())[2] == "a + b"


def test_the_merge_tool_asks_for_a_side_of_every_conflict(repo: Repo) -> None:
    ours = replaced(replaced(samples.SALES, "sum", "a"), "load", "c")
    theirs = replaced(replaced(samples.SALES, "sum", "b"), "load", "d")
    assert repo.merge(samples.SALES, ours, theirs).returncode == 1
    repo.git("branch", "-m", "theirs", "feature")
    tool = ("mergetool", "--tool=cellwright", "--no-prompt", NAME)
    assert repo.run(*tool, stdin=b"2\nq\n").returncode == 1
    assert "<<<<<<<" in sources(repo.file.read_bytes())[2]  # what was left half done is not saved
    done = repo.run(*tool, stdin=b"what?\n2\nboth\n")
    assert done.returncode == 0, done
    assert b"1 of 2  cell load" in done.stdout
    assert b"1  main\n" in done.stdout
    assert b"2  feature\n" in done.stdout
    assert sources(repo.file.read_bytes())[1:3] == ["d", "a\nb"]
    assert f"M  {NAME}" in repo.status


def test_the_size_of_markers_follows_the_attribute(repo: Repo) -> None:
    (repo.folder / ".gitattributes").write_text("*.ipynb conflict-marker-size=12\n", "utf-8")
    repo.merge(
        samples.SALES, replaced(samples.SALES, "sum", "a"), replaced(samples.SALES, "sum", "b")
    )
    assert sources(repo.file.read_bytes())[2].startswith("<" * 12 + " main\n")


@pytest.mark.parametrize("ours_deletes", [True, False], ids=["ours deletes", "theirs deletes"])
def test_deleting_what_the_other_side_edited_is_a_conflict_that_shows_the_cell(
    ours_deletes: bool, repo: Repo
) -> None:
    deleted = edited(samples.SALES, {"op": "delete", "cell": "sum"})
    changed = replaced(samples.SALES, "sum", "edited")
    sides = (deleted, changed) if ours_deletes else (changed, deleted)
    done = repo.merge(samples.SALES, *sides)
    assert done.returncode == 1
    merged = repo.file.read_bytes()
    assert_valid(merged)
    [marked] = [source for source in sources(merged) if "=======" in source]
    lines = marked.splitlines()
    expected = ["<<<<<<< main", "=======", "edited", ">>>>>>> theirs"]
    if not ours_deletes:
        expected = ["<<<<<<< main", "edited", "=======", ">>>>>>> theirs"]
    assert lines == expected


def test_both_sides_add_a_notebook(repo: Repo) -> None:
    """The same start, and a cell of each side's own."""
    ours = inserted(samples.SALES, "ours", id="ours")
    theirs = inserted(samples.SALES, "theirs", id="theirs", at=0)
    done = repo.merge(None, ours, theirs)
    merged = repo.file.read_bytes()
    assert_valid(merged)
    assert done.returncode == 0
    assert {"ours", "theirs"} <= set(sources(merged))
    assert len(sources(merged)) == 9


def test_both_sides_add_different_notebooks_under_one_name(repo: Repo) -> None:
    """Whatever becomes of it, both sides are there, and it is a notebook."""
    ours = samples.write(samples.code("same", "ours"), samples.code("a", "only ours"))
    theirs = samples.write(samples.code("same", "theirs"), samples.code("b", "only theirs"))
    done = repo.merge(None, ours, theirs)
    merged = repo.file.read_bytes()
    assert done.returncode == 1
    assert_valid(merged)
    text = "\n".join(sources(merged))
    for source in ("ours", "theirs", "only ours", "only theirs"):
        assert source in text.splitlines()


def test_a_notebook_without_ids_is_merged_by_content(repo: Repo) -> None:
    done = repo.merge(NO_IDS, replaced(NO_IDS, 0, "# Ours"), inserted(NO_IDS, "theirs", at=3))
    assert done.returncode == 0
    merged = repo.file.read_bytes()
    assert_valid(merged)
    assert sources(merged) == [
        *("# Ours", "total = 42\nprint(total)", "total", "theirs", "# the end")
    ]
    assert not any("id" in cell for cell in json.loads(merged)["cells"])


def test_a_conflict_in_a_notebook_without_ids(repo: Repo) -> None:
    done = repo.merge(NO_IDS, replaced(NO_IDS, 2, "ours"), replaced(NO_IDS, 2, "theirs"))
    assert done.returncode == 1
    merged = repo.file.read_bytes()
    assert_valid(merged)
    assert "<<<<<<< main\nours\n=======\ntheirs\n>>>>>>> theirs" in sources(merged)


@pytest.mark.parametrize("who", ["base", "ours", "theirs"])
def test_a_broken_notebook_is_a_conflict_that_loses_nothing(who: str, repo: Repo) -> None:
    sides = {
        "base": samples.SALES,
        "ours": replaced(samples.SALES, "sum", "ours"),
        "theirs": replaced(samples.SALES, "load", "theirs"),
    }
    sides[who] = b"{ broken " + sides[who]
    done = repo.merge(sides["base"], sides["ours"], sides["theirs"])
    assert done.returncode == 1
    assert f"UU {NAME}" in repo.status
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"cannot be merged" in done.stdout + done.stderr
    # Our side stays in the folder, and git has the other.
    assert sides["ours"] in (repo.file.read_bytes(), repo.run("show", f":2:{NAME}").stdout)
    assert repo.run("show", f":3:{NAME}").stdout == sides["theirs"]


def test_an_old_notebook_is_a_conflict_that_says_why(repo: Repo) -> None:
    old = {"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": []}]}
    data = json.dumps(old).encode()
    done = repo.merge(data, data.replace(b"{}", b'{"a": 1}'), data.replace(b"{}", b'{"b": 1}'))
    assert done.returncode == 1
    assert b"nbformat 3.0" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["a b.ipynb", "it's \"it\".ipynb", "sub/$HOME;x.ipynb", "größe.ipynb"])  # fmt: skip
def test_any_name_of_a_notebook_will_do(name: str, repo: Repo) -> None:
    ours, theirs = replaced(samples.SALES, "sum", "ours"), replaced(samples.SALES, "load", "y")
    assert repo.merge(samples.SALES, ours, theirs, name=name).returncode == 0
    assert sources((repo.folder / name).read_bytes())[1:3] == ["y", "ours"]
    assert repo.status == ""


def steps() -> dict[str, Callable[[Repo], Any]]:
    return {
        "rebase": lambda repo: repo.run("rebase", "theirs"),
        "cherry-pick": lambda repo: repo.run("cherry-pick", "theirs"),
        "revert": lambda repo: repo.run("revert", "--no-edit", "HEAD~1"),
    }


@pytest.mark.parametrize("step", steps())
def test_other_ways_to_merge_use_the_driver_too(step: str, repo: Repo) -> None:
    """With cells that stand so close that lines would be in conflict."""
    base = samples.write(samples.code("a", "1"), samples.code("b", "2"))
    first = replaced(base, "a", "reverted") if step == "revert" else base
    repo.commits(
        ("base", None, base),
        ("theirs", "base", replaced(base, "a", "theirs")),
        ("main", "base", first),
        ("main", None, replaced(first, "b", "ours")),
    )
    assert steps()[step](repo).returncode == 0
    expected = ["1" if step == "revert" else "theirs", "ours"]
    assert sources(repo.file.read_bytes()) == expected
    assert repo.status == ""


def test_nothing_is_left_behind_and_no_history_is_written(repo: Repo) -> None:
    """A merge by git is git's business: our journal learns of it as of any outside change."""
    repo.merge(
        samples.SALES, replaced(samples.SALES, "sum", "a"), replaced(samples.SALES, "load", "b")
    )
    assert sorted(item.name for item in repo.folder.iterdir()) == [".git", NAME]
    assert succeed("log", NAME).out == b""
