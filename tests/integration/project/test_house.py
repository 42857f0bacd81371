"""The house keeps its own rules: two commands, pinned requirements, no trace of a machine."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, require_tool

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MADE = {".dev", ".git", ".venv", "__pycache__", ".corpus"}  # made by tools, in no commit

REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"[a-z0-9-]+==\S+( ; .+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
ORIGIN = re.compile(r"    # +(via|-[cr] requirements/[a-z]+\.(in|txt)|[a-z0-9-]+).*")

# In pieces, so that this file does not name them.
HOSTS = ["pypi" + ".org", "python" + "hosted", "npm" + "js.", "yarn" + "pkg."]
PATHS = ["/ro" + "ot/", "/wo" + "rk/", "/opt/" + "wheels", "/opt/" + "pypi", "../sha" + "red"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def our_files() -> list[Path]:
    """Every file that is in a commit or may get into the next."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        paths = [ROOT / os.fsdecode(name) for name in listing.split(b"\0")[:-1]]
    except (OSError, subprocess.CalledProcessError):
        paths = []
    if ROOT / "dev" not in paths:  # an unpacked archive, or no git
        paths = [path for path in ROOT.rglob("*") if not MADE & set(path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file()]


def test_changelog_opens_with_the_version_or_with_what_is_unreleased() -> None:
    found = re.search(
        r'^__version__ = "([^"]+)"$', read("src/cellwright/__init__.py"), re.MULTILINE
    )
    assert found
    version = found[1]
    newest = re.search(r"^## \[([^]]+)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert newest
    if ".dev" in version:
        assert newest[1] == "Unreleased"
    else:
        assert newest[1] in {"Unreleased", version}
        assert f"## [{version}]" in read("CHANGELOG.md")


def test_version_has_one_home() -> None:
    assert PROJECT["project"]["dynamic"] == ["readme", "version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/cellwright/__init__.py"


def test_licence_is_named_and_there() -> None:
    assert PROJECT["project"]["license"] == "BSD-3-Clause"
    assert PROJECT["project"]["license-files"] == ["LICENSE"]
    assert read("LICENSE").startswith("BSD 3-Clause License")


def test_agents_page_stays_short() -> None:
    assert len(read("AGENTS.md").splitlines()) <= 100


def test_readme_gives_the_two_commands_above_the_fold() -> None:
    first_screen = "\n".join(read("README.md").splitlines()[:24])
    assert "./dev demo" in first_screen
    assert "./dev test" in first_screen


def test_help_lists_every_command() -> None:
    commands = re.findall(
        r"^    ([a-z]+)(?: \| [^)]+)?\) (?:run_)?[a-z]+", read("dev"), re.MULTILINE
    )
    assert {"demo", "test", "check", "fix", "bench", "faults", "lock", "help"} <= set(commands)
    shown = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^  ([a-z]+) .*\S{2}", shown.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(commands)


def test_help_is_what_dev_says_without_a_command() -> None:
    answers = [
        subprocess.run([ROOT / "dev", *words], capture_output=True, text=True, check=True).stdout
        for words in ([], ["help"], ["--help"])
    ]
    assert answers[0] == answers[1] == answers[2] != ""


def test_dev_refuses_an_unknown_command() -> None:
    answer = subprocess.run([ROOT / "dev", "tset"], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "no command 'tset'" in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_dev_says_so_when_python_will_not_do(python: str) -> None:
    answer = subprocess.run(
        [ROOT / "dev", "promises"],
        env={**os.environ, "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert f"no Python 3.11 or newer among: {python}" in answer.stderr


@pytest.mark.parametrize("script", ["dev", ".ci/run"])
def test_scripts_are_executable_and_parse(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    shell = read(script).splitlines()[0].replace("/", " ").split()[-1]
    subprocess.run([require_tool(shell), "-n", ROOT / script], check=True)


def test_every_requirement_file_is_pinned() -> None:
    sources = {path.stem for path in (ROOT / "requirements").glob("*.in")}
    assert {path.stem for path in REQUIREMENTS} == sources != set()


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_requirements_are_pins_hashes_and_nothing_else(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not any(p.fullmatch(line) for p in (PIN, HASH, ORIGIN))]
    assert odd == []
    pins = [number for number, line in enumerate(lines) if PIN.fullmatch(line)]
    assert pins
    assert all(HASH.fullmatch(lines[number + 1]) for number in pins)


def test_direct_dependencies_are_all_pinned() -> None:
    pinned = re.findall(r"^([a-z0-9-]+)==", read("requirements/dev.txt"), re.MULTILINE)
    wanted = [
        re.split(r"[<>=~! ;\[]", line)[0].lower().replace("_", "-")
        for line in PROJECT["project"]["dependencies"]
    ]
    assert set(wanted) - set(pinned) == set()


@pytest.mark.parametrize("forbidden", [*HOSTS, *PATHS])
def test_no_file_names_a_machine_or_an_index(forbidden: str) -> None:
    # Notebooks are other people's; what they say about their machines is part of their bytes.
    offenders = [
        str(path.relative_to(ROOT))
        for path in our_files()
        if path.suffix != ".ipynb" and forbidden.encode() in path.read_bytes()
    ]
    assert offenders == []


def test_notebooks_are_never_converted_by_git() -> None:
    assert "*.ipynb -text" in read(".gitattributes").splitlines()


def test_ci_runs_the_checks_of_style_types_and_layers_and_the_tests() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    dev = (ROOT / "dev").read_text(encoding="utf-8")
    checks = dev[dev.index("run_check()") : dev.index("step()")]

    lines = [line.split()[:2] for line in ci.splitlines()]
    assert ["./dev", "check"] in lines
    assert ["./dev", "test"] in lines
    assert ci.count("status=$?") == 2, "both of them decide"
    for step in ("ruff check .", "ruff format --check .", "mypy", "lint-imports"):
        assert f"step {step}" in checks
