"""`cellwright batch` as a process: real kernels, a kill in the middle, and what it leaves."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import engine_of_its_own, wait_for
from tests.unit.cli.calling import command, process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, *sources: str, tag: str = "") -> None:
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {"tags": [tag]} if tag and not number else {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(sources)
    ]
    shape = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / name).write_text(json.dumps(shape))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def texts(path: Path) -> str:
    return "".join(
        "".join(output.get("text", ""))
        for cell in read(path)["cells"]
        for output in cell["outputs"]
    )


def test_parameters_give_a_copy_each_and_a_report_says_which_failed(folder: Path) -> None:
    (folder / "data.txt").write_text("data")
    sources = ("year = 0", "print(open('data.txt').read(), year)", "assert year < 2026")
    write(folder, "sales.ipynb", *sources, tag="parameters")
    before = (folder / "sales.ipynb").read_bytes()
    words = ("--matrix", "year=2025,2026", "--out", "out/{stem}-{year}.ipynb", "--report", "junit")
    answer = process("batch", "sales.ipynb", *words, "--json")
    assert answer.code == 1, answer
    *events, last = map(json.loads, answer.text.splitlines())
    assert (last["ok"], last["error"]["code"]) == (False, "BATCH_FAILED")
    good, bad = last["data"]["runs"]
    assert (good["status"], good["output"]) == ("ok", "out/sales-2025.ipynb")
    assert (bad["status"], bad["cell"], bad["index"]) == ("error", "c2", 3)
    assert [event["event"] for event in events].count("end") == 2
    # In the folder of the notebook, where its data is.
    assert texts(folder / "out/sales-2025.ipynb") == "data 2025\n"
    injected = read(folder / "out/sales-2026.ipynb")["cells"][1]
    assert injected["metadata"]["tags"] == ["injected-parameters"]
    assert "".join(injected["source"]) == "# Parameters\nyear = 2026"
    assert (folder / "sales.ipynb").read_bytes() == before
    assert 'failures="1"' in (folder / "cellwright-batch.xml").read_text()
    kinds = [entry["kind"] for entry in process("log", good["output"], "--json").data["entries"]]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("edit", {"run"}, "create")


def test_a_report_goes_through_no_link_that_the_person_has_not_named(folder: Path) -> None:
    write(folder, "n.ipynb", "1")
    mine = folder / "mine"
    mine.write_text("mine")
    (folder / "cellwright-batch.html").symlink_to(mine)
    os.mkfifo(folder / "cellwright-batch.xml")
    for kind in ("html", "junit"):
        answer = process("batch", "n.ipynb", "--out", "out", "--report", kind)
        assert answer.code == 2, answer
        assert "The report cannot be saved" in answer.err
    assert mine.read_text() == "mine"
    (folder / "link").symlink_to(mine)
    assert process("batch", "n.ipynb", "--out", "out", "--report", "html=link").code == 0
    assert mine.read_text() != "mine"


def test_a_batch_that_was_killed_resumes_and_runs_nothing_twice(folder: Path) -> None:
    done = folder / "done"
    line = f"with open({str(done)!r}, 'a') as f: f.write('{{}} ')"
    for number in range(4):
        write(folder, f"n{number}.ipynb", line.format(number))
    gate = folder / "gate"
    wait = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.02)"
    write(folder, "n2.ipynb", wait, line.format(2))
    words = ("batch", *(f"n{number}.ipynb" for number in range(4)), "--out", "out", "-j", "1")
    with subprocess.Popen(command(*words), stderr=subprocess.PIPE) as first:
        wait_for(lambda: done.exists() and done.read_text().split() == ["0", "1"], "two of them")
        wait_for((folder / "out/n2.ipynb").exists, "the third to begin")
        first.send_signal(signal.SIGKILL)
    gate.touch()
    answer = process(*words, "--resume", "--json")
    assert answer.code == 0, answer
    last = json.loads(answer.text.splitlines()[-1])
    assert [run["status"] for run in last["data"]["runs"]] == ["skipped", "skipped", "ok", "ok"]
    assert done.read_text().split() == ["0", "1", "2", "3"]


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(folder: Path) -> None:
    write(folder, "a.ipynb", "print(1)")
    write(folder, "b.ipynb", "print('on', flush=True)\nimport time; time.sleep(60)")
    words = command("batch", "a.ipynb", "b.ipynb", "--out", "out", "-j", "1")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        copy = folder / "out/b.ipynb"
        wait_for(lambda: copy.exists() and "on" in texts(copy), "the second to print", 40)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=100)
    assert running.returncode == 130, said
    assert "--resume runs the rest" in said
    assert "1 not finished" in said
    assert read(folder / "out/a.ipynb")["metadata"]["papermill"]["exception"] is False


SEES_SPARES = """
import os, psutil, time
me = psutil.Process()
def find_spares():  # kernels of this batch that are younger than this one
    return [
        each.pid
        for each in psutil.process_iter(["cmdline", "environ", "create_time"])
        if "ipykernel_launcher" in (each.info["cmdline"] or ())
        and (each.info["environ"] or {}).get("BATCH") == os.environ["BATCH"]
        and each.info["create_time"] > me.create_time()
    ]
until = time.monotonic() + 60
while not (spares := find_spares()) and time.monotonic() < until:
    time.sleep(0.05)
print(os.getpid(), os.getppid(), *spares)
"""


def test_a_notebook_gets_a_warm_kernel_that_knows_nothing_of_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELLWRIGHT_SPARE_KERNEL")
    monkeypatch.setenv("BATCH", str(folder))
    knows = "import os, sys; print('secret' in globals(), 'SECRET' in os.environ, 'told' in sys.modules)"
    tells = "secret = 1; os.environ['SECRET'] = '1'; sys.modules['told'] = sys; os.chdir('/')"
    for name in ("a", "b", "c"):
        write(folder, f"{name}.ipynb", knows, SEES_SPARES, "print(os.getcwd())", tells)
    answer = process("batch", "*.ipynb", "--out", "out", "--jobs", "1", "--json")
    assert answer.code == 0, answer
    said = [texts(folder / f"out/{name}.ipynb").splitlines() for name in ("a", "b", "c")]
    assert [(lines[0], lines[2]) for lines in said] == [("False False False", str(folder))] * 3
    pids = [line.split() for _, line, _ in said]
    assert len({mine for mine, *_ in pids}) == 3, "every notebook has a process of its own"
    for (_, _, *spares), (following, parent, *_) in itertools.pairwise(pids):
        # What was there may be its parent, which becomes its keeper.
        assert {following, parent} & {*spares}, "it was started while the notebook before ran"


def test_the_function_works_in_a_script(folder: Path) -> None:
    write(folder, "a.ipynb", "print(1)")
    code = (
        "from cellwright.batch import run_batch\n"
        "report = run_batch(['a.ipynb'], out='out')\n"
        "report.raise_for_status(); print(report.summary())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1 run: 1 ok in ")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("words", "how", "expected"),
    [
        (("--out", "out"), signal.SIGINT, "abbc"),
        pytest.param((), signal.SIGINT, "abbc", marks=pytest.mark.all),
        # The engine goes on with what a client began that was killed.
        pytest.param(("--out", "out"), signal.SIGKILL, "abc", marks=pytest.mark.all),
    ],
)
def test_what_was_stopped_continues_with_its_cell_as_long_as_the_engine_has_its_kernel(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    how: signal.Signals,
    expected: str,
) -> None:
    log, gate = folder / "log", folder / "gate"
    log.touch()
    say = f"def say(text):\n    with open({str(log)!r}, 'a') as file: file.write(text)\n"
    wait = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.02)"
    write(folder, "n.ipynb", f"{say}say('a')", f"say('b')\n{wait}", "say('c'); print('end')")
    place = folder.joinpath(*words[1:], "n.ipynb")
    with engine_of_its_own(monkeypatch):
        with subprocess.Popen(
            command("batch", "n.ipynb", *words), stderr=subprocess.DEVNULL
        ) as running:
            wait_for(lambda: log.read_text() == "ab", "the second cell", 60)
            running.send_signal(how)
        gate.touch()
        answer = process("batch", "n.ipynb", *words, "--resume", "--json")
        assert answer.code == 0, answer
        assert log.read_text() == expected
        (row,) = json.loads(answer.text.splitlines()[-1])["data"]["runs"]
        assert (row["status"], row["cells"], row["ran"]) == ("ok", 3, 3)
        assert texts(place) == "end\n"
        assert process("sessions", "--json").data["sessions"] == []
        ran = {run["subject"] for run in process("runs", "--json").data["runs"]}
        assert ran == {str(place)}
        assert process("batch", "n.ipynb", *words, "--resume").code == 0
        assert log.read_text() == expected, "it is done"
