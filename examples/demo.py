"""`./dev demo`: what Cellwright does, on a real notebook, from an empty machine.

Every line that starts with `$` is a command you can type yourself.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLE = Path(__file__).parent / "rain.ipynb"
# Keeps the numbers of a cell apart from its text, at a terminal and in a file.
COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


class Stage:
    """A folder to play in, with a history of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / ".state"),
            "XDG_RUNTIME_DIR": str(folder / ".runtime"),
            "CELLWRIGHT_ENGINE": "always",  # also where CI is set: it is stopped at the end
            **({"FORCE_COLOR": "1"} if COLOR else {}),
        }
        (folder / ".runtime").mkdir(mode=0o700)

    def run(self, words: str, *, stdin: str | None = None, expect: int = 0) -> str:
        """Type a command, show it with its answer, and check how it ends."""
        print(f"\033[1m$ {words}\033[0m" if COLOR else f"$ {words}")
        answer = self.quiet(words, stdin=stdin, expect=expect)
        print(answer)
        return answer

    def quiet(self, words: str, *, stdin: str | None = None, expect: int = 0) -> str:
        """Type a command and check how it ends."""
        command = [sys.executable, "-m", *shlex.split(words)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != expect:
            sys.exit(f"demo: {words} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout + done.stderr

    def show(self, words: str) -> None:
        """Type a command that draws: at a terminal it has the terminal to itself."""
        if not sys.stdout.isatty():
            self.run(words)
            return
        print(f"\033[1m$ {words}\033[0m" if COLOR else f"$ {words}", flush=True)
        subprocess.run(
            [sys.executable, "-m", *shlex.split(words)],
            cwd=self.folder,
            env=self.environment,
            check=True,
        )


def say(text: str) -> None:
    """A sentence between the commands."""
    print(f"\n# {text}")


def main() -> None:
    """Play the demo."""
    with tempfile.TemporaryDirectory() as name:
        stage = Stage(Path(name))
        try:
            play(stage)
            report(stage)
            let_an_agent_in(stage)
            chat(stage)
        finally:
            stage.quiet("cellwright engine stop")
    print("\nThat was it: run, look, read, edit, conflict, undo. `cellwright --help` has the rest.")


def play(stage: Stage) -> None:
    """Run, look, read, edit, conflict, write as text; and not a byte lost."""
    notebook = stage.folder / "rain.ipynb"
    shutil.copyfile(SAMPLE, notebook)
    original = notebook.read_bytes()

    say("A whole notebook runs, from its first cell to its last, and its outputs land in the file")
    stage.run("cellwright run rain.ipynb")
    say("A table and a plot, as people see them")
    stage.show("cellwright show rain.ipynb --cells table --cells plot --width 78 --no-pager")

    say("and the cells as text that any editor, and any model, can change")
    stage.run("cellwright read rain.ipynb:outline")
    stage.run("cellwright read rain.ipynb:cell=total")

    say("Replace one cell: every byte outside it stays as it was")
    before = notebook.read_bytes()
    stage.run("cellwright edit rain.ipynb replace total 'frame.sum().idxmax()' --diff")
    kept = set(before.splitlines()) & set(notebook.read_bytes().splitlines())
    print(f"{len(kept)} of {len(set(before.splitlines()))} lines of the file are untouched")

    say("Two edits of one moment: the cell changed after it was read, so nothing is overwritten")
    base = json.loads(stage.quiet("cellwright read rain.ipynb --json"))["data"]["revision"]
    stage.quiet("cellwright edit rain.ipynb replace total 'frame.sum().max()'")
    stage.run(
        f"cellwright edit rain.ipynb replace total 'frame.sum().min()' --base {base}", expect=6
    )

    say("while a change elsewhere is merged")
    read = json.loads(stage.quiet("cellwright read rain.ipynb --json"))["data"]
    text = read["text"].replace("## Plot", "## The plot")
    stage.quiet("cellwright edit rain.ipynb insert '# The end' --type markdown")
    stage.run(f"cellwright write rain.ipynb --base {read['revision']}", stdin=text)

    say("The kernel stays for the next command. Edit and run in one call: the answer tells both")
    stage.run("cellwright edit rain.ipynb replace total 'frame.sum()' --run changed")
    say("An edit upstream makes results stale; it is known which, and why")
    stage.quiet(
        "cellwright edit rain.ipynb replace table"
        " 'import pandas as pd\n\nframe = pd.DataFrame(rain, index=months).cumsum()\nframe'"
    )
    stage.run("cellwright stale rain.ipynb")
    stage.run("cellwright run rain.ipynb --stale")
    stage.show("cellwright show rain.ipynb --cells table --cells total --width 78 --no-pager")
    stage.run("cellwright sessions")

    say("Code runs in sessions; what fails, or takes too long, is said as it is")
    stage.run("""cellwright eval 'rain = [2495, 16, 1054]' 'sum(rain) / len(rain)'""")
    stage.run(
        """cellwright eval -s slow --kernel python3 'import time; time.sleep(60)' --timeout 1""",
        expect=124,
    )
    answer = json.loads(stage.quiet("cellwright eval --json 'for day in range(9999): print(day)'"))[
        "data"
    ]["cells"][0]
    shown = len(answer["text"].splitlines())
    print(f"Of {answer['total_lines']:,} lines {shown:,} are shown; all are kept:")
    stage.run(f"cellwright artifact {answer['artifact']} --limit 12")

    say("Everything is on record, and can be taken back")
    stage.run("cellwright log rain.ipynb")
    stage.run("cellwright backup rain.ipynb --restore first")
    if notebook.read_bytes() != original:
        sys.exit("demo: the notebook is not what it was")
    print("The file is what it was before, to the byte.")


def report(stage: Stage) -> None:
    """A notebook that writes its own report."""
    shutil.copyfile(SAMPLE.with_name("report.ipynb"), stage.folder / "report.ipynb")
    say("A kernel can edit its own notebook: this one adds sections, and runs them, as it goes")
    stage.run("cellwright run report.ipynb")
    stage.run("cellwright read report.ipynb:outline")


def let_an_agent_in(stage: Stage) -> None:
    """The task of an agent, over the same engine."""
    say("An agent mends a notebook over MCP: four calls, no key")
    sys.stdout.flush()
    subprocess.run(
        [sys.executable, str(SAMPLE.with_name("agent.py")), str(stage.folder)],
        env=stage.environment,
        check=True,
    )


def chat(stage: Stage) -> None:
    """The assistant, with the model that needs no key."""
    say("An assistant knows the notebook, too; without a language model it does what it is told")
    stage.run("cellwright chat harvest.ipynb -p 'what does cell 4 do?'")
    stage.run("cellwright chat harvest.ipynb -p 'run cell 4'", expect=5)
    stage.run("cellwright chat harvest.ipynb --mode agent --yes -p 'run cell 2'")


if __name__ == "__main__":
    main()
