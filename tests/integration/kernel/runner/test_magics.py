"""Magics, and where a line is one."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellwright.kernel.runner.inside.magic_syntax import translate
from cellwright.kernel.transport import Code
from cellwright.outputs.events import StreamEvent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.kernel.runner.conftest import Driver


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("%pwd", "__cellwright__.line('pwd', '')"),
        ("!ls -l", "__cellwright__.shell('ls -l')"),
        ("x = !ls", "x = __cellwright__.capture('ls')"),
        ("!!ls", "__cellwright__.capture('ls')"),
        ("a.b = %pwd", "a.b = __cellwright__.line('pwd', '')"),
        (
            "if x:\n    !ls\n    %cd ..",
            "if x:\n    __cellwright__.shell('ls')\n    __cellwright__.line('cd', '..')",
        ),
        ("!echo a \\\n  b\nx", "__cellwright__.shell('echo a    b')\n\nx"),
        ("%%bash -x\necho 1\n", "__cellwright__.cell('bash', '-x', 'echo 1\\n')\n"),
        ("'''\n%pwd\n'''\n%pwd", "'''\n%pwd\n'''\n__cellwright__.line('pwd', '')"),
        ("f(\n%pwd\n)\n!ls", "f(\n%pwd\n)\n__cellwright__.shell('ls')"),
        ("x = 10 \\\n%y\n!ls", "x = 10 \\\n%y\n__cellwright__.shell('ls')"),
        ("s = '(' # (\n!ls", "s = '(' # (\n__cellwright__.shell('ls')"),
        ("s = 'it\\'s'\n!ls 'a'", "s = 'it\\'s'\n__cellwright__.shell(\"ls 'a'\")"),
        (
            "x = !echo '(\n!ls",
            "x = __cellwright__.capture(\"echo '(\")\n__cellwright__.shell('ls')",
        ),
        ("x = 5 % 3\ny = a != b\n!ls", "x = 5 % 3\ny = a != b\n__cellwright__.shell('ls')"),
    ],
)
def test_magics_become_calls_and_nothing_else_changes(source: str, expected: str) -> None:
    assert translate(source) == expected


@pytest.mark.parametrize("source", ["x = (", "1 +", "'%d' % 5", "print('!ls'", "a %b", "x = ! 5 ="])
def test_what_has_no_magic_is_left_to_the_compiler(source: str) -> None:
    translated = translate(source)
    assert translated is None or "__cellwright__" in translated


@given(st.text("ab '\"\\#\n%!=()[]{}x1", max_size=60))
def test_every_line_keeps_its_number(source: str) -> None:
    translated = translate(source)
    if translated is not None and not source.lstrip().startswith("%%"):
        assert translated.count("\n") == source.count("\n")


async def test_places_and_variables(cells: Driver, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    moved = await cells.ok("%cd sub")
    assert moved.stdout == f"{tmp_path / 'sub'}\n"
    assert moved.statuses == [{"op": "cd", "cwd": str(tmp_path / "sub")}]
    assert (await cells.ok("%pwd")).result == repr(str(tmp_path / "sub"))
    await cells.ok("%cd -")
    assert (await cells.ok("here = %pwd\nhere")).result == repr(str(tmp_path))
    assert "sub" in (await cells.ok("%ls")).stdout
    assert (await cells.ok("%set_env CW_X 1 2")).statuses == [{"op": "env", "name": "CW_X"}]
    assert (await cells.ok("%env CW_X")).result == "'1 2'"
    await cells.ok("%env CW_X=3")
    assert (await cells.ok("import os; os.environ['CW_X']")).result == "'3'"
    assert (await cells.ok("e = %env\ne['CW_X']")).result == "'3'"
    assert (await cells.run("%env CW_NOT_THERE")).raised.ename == "KeyError"
    assert (await cells.run("%cd /no/such")).raised.ename == "FileNotFoundError"


async def test_names_can_be_listed_and_forgotten(cells: Driver) -> None:
    await cells.ok("number = 5\nthings = [1, 2]\n_hidden = 1")
    assert (await cells.ok("%who")).stdout == "number  things\n"
    table = (await cells.ok("%whos")).stdout
    assert "number    int   5\n" in table
    assert "things    list  n=2\n" in table
    assert (await cells.ok("%reset -f")).statuses == [{"op": "reset"}]
    assert (await cells.run("number")).raised.ename == "NameError"
    assert (await cells.ok("%who")).stdout == "No names yet.\n"
    assert (await cells.ok("display(1); 2")).result == "2"


async def test_shell_commands(cells: Driver) -> None:
    await cells.ok("name = 'w o r l d'\ndef f():\n    inner = 7\n    !echo {inner} $inner\n")
    assert (await cells.ok("!echo {name} $name $CW_NOT {1+1}")).stdout == "w o r l d w o r l d 2\n"
    assert (await cells.ok("!echo '{{x}}' {name.upper()}")).stdout == "{x} W O R L D\n"
    assert (await cells.ok("f()")).stdout == "7 7\n"
    lines = await cells.ok(
        "x = !printf 'a\\nb\\n'; echo err >&2; exit 3\nx, x.n, x.s, x.returncode"
    )
    assert lines.result == "(['a', 'b', 'err'], 'a\\nb\\nerr', 'a b err', 3)"
    failed = await cells.ok("!exit 4")
    assert failed.statuses == [{"op": "shell", "returncode": 4}]
    assert (await cells.ok("_exit_code")).result == "4"
    assert (await cells.ok("x.grep('a')")).result == "['a']"
    assert (await cells.ok("print(1)\n!echo 2\nprint(3)")).stdout == "1\n2\n3\n"
    many = await cells.ok("y = !seq 100000\nlen(y), y.truncated")
    assert many.result == "(3000, True)"
    assert "was cut" in many.stderr


async def test_awk_keeps_its_braces(cells: Driver) -> None:
    assert (await cells.ok("!echo a b | awk '{print $2}'")).stdout == "b\n"


@pytest.mark.parametrize("shell", ["bash", "sh"])
async def test_scripts(cells: Driver, shell: str) -> None:
    ran = await cells.ok(f"%%{shell}\nx=5\necho out $x\necho err >&2\n")
    assert (ran.stdout, ran.stderr) == ("out 5\n", "err\n")
    failed = await cells.run(f"%%{shell}\nexit 3\n")
    assert failed.raised.ename == "CalledProcessError"


async def test_files(cells: Driver, tmp_path: Path) -> None:
    wrote = await cells.ok("%%writefile made.py\nimport sys\nvalue = len(sys.argv)\n")
    assert wrote.stdout == "Writing made.py\n"
    assert wrote.statuses[0]["op"] == "writefile"
    assert (tmp_path / "made.py").read_text() == "import sys\nvalue = len(sys.argv)\n"
    await cells.ok("%%writefile -a made.py\nprint('ran', __name__, value)\n")
    ran = await cells.ok("%run made.py one two")
    assert ran.stdout == "ran __main__ 3\n"
    assert (await cells.ok("value")).result == "3"
    assert (await cells.ok("%load made.py")).stdout == (tmp_path / "made.py").read_text()
    (tmp_path / "bad.py").write_text("x = 1\n1 / 0\n")
    failed = await cells.run("%run bad.py")
    assert 'bad.py", line 2' in "\n".join(failed.raised.traceback)
    assert (await cells.run("%run none.py")).raised.ename == "FileNotFoundError"


async def test_timing(cells: Driver) -> None:
    timed = await cells.ok("%time sum(range(10))")
    assert timed.result == "45"
    assert "Wall time" in timed.stdout
    assert timed.statuses[0]["op"] == "time"
    whole = await cells.ok("%%time\nt = 1\nt + 1")
    assert whole.result == "2"
    assert "per loop" in (await cells.ok("%timeit -n 10 -r 2 1 + 1")).stdout
    often = await cells.ok("%%timeit -n3 -r2 q = 5\nq * 2")
    assert often.statuses[0]["loops"] == 3
    failed = await cells.run("%time 1 / 0")
    assert failed.raised.ename == "ZeroDivisionError"


async def test_capture(cells: Driver) -> None:
    quiet = await cells.ok("%%capture out\nimport sys\nprint('o')\nprint('e', file=sys.stderr)")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert (await cells.ok("out.stdout, out.stderr")).result == "('o\\n', 'e\\n')"
    assert (await cells.ok("out.show()")).stdout == "o\n"
    failed = await cells.run("%%capture\n1 / 0")
    assert failed.raised.ename == "ZeroDivisionError"
    assert (await cells.ok("print('seen')")).stdout == "seen\n"


async def test_an_unknown_magic_names_the_known_ones(cells: Driver) -> None:
    ran = await cells.run("%debug now")
    assert ran.raised.ename == "UnknownMagic"
    for word in ("%debug", "%pip", "%timeit", "Jupyter kernel"):
        assert word in ran.raised.evalue
    whole = await cells.run("%%html\n<b>")
    assert "%%bash" in whole.raised.evalue
    assert len(ran.raised.traceback) == 4


async def test_a_magic_in_a_broken_cell_leaves_the_syntax_error(cells: Driver) -> None:
    ran = await cells.run("!echo never\nx = (")
    assert ran.raised.ename == "SyntaxError"
    assert ran.stdout == ""


async def test_pip_streams_tells_and_lets_the_new_version_in(cells: Driver, tmp_path: Path) -> None:
    # A pip of our own plays the installation: it rewrites the module.
    fake = tmp_path / "pip"
    fake.mkdir()
    (fake / "__init__.py").touch()
    (fake / "__main__.py").write_text(
        "import sys\nfrom pathlib import Path\nprint('pip', *sys.argv[1:])\n"
        "if 'install' in sys.argv: Path('grown.py').write_text('version = 22\\n')\n"
        "if 'fail' in sys.argv: sys.exit(1)\n"
    )
    (tmp_path / "grown.py").write_text("version = 1\n")
    listed = await cells.ok("%pip list")
    assert listed.stdout == "pip list\n"
    told = {"op": "pip", "arguments": ["list"], "returncode": 0, "purged": []}
    assert listed.statuses == [told]
    failed = await cells.run("%pip fail")
    assert failed.raised.ename == "CalledProcessError"
    assert failed.statuses[0]["returncode"] == 1
    assert (await cells.ok("import grown; grown.version")).result == "1"
    installed = await cells.ok("%pip install grown")
    assert installed.statuses[0]["purged"] == ["grown"]
    assert (await cells.ok("import grown; grown.version")).result == "22"


async def test_shell_output_is_streamed_while_it_runs(cells: Driver) -> None:
    seen = ""
    async for event in cells.runner.execute(Code("!echo first; sleep 30")):
        if isinstance(event, StreamEvent):
            seen += event.text
            await cells.runner.interrupt()
    assert seen == "first\n"
    assert (await cells.ok("1")).result == "1"


async def test_a_cell_may_mix_python_and_magics(cells: Driver) -> None:
    source = """
        import os
        total = 0
        for name in ["a", "b"]:
            out = !echo {name}
            total += len(out)
            if total == 2:
                !echo done {total}
        total
    """
    ran = await cells.ok(textwrap.dedent(source))
    assert (ran.stdout, ran.result) == ("done 2\n", "2")
