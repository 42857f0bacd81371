"""Every file of the table in `tests.property.malformed` is read in little memory."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.conftest import ROOT

CHILD = """
import sys
from cellwright import Notebook
from cellwright.errors import CellwrightError, TooDeep
from tests.property.malformed import CASES
if sys.argv[1] == "msgspec":
    import cellwright.document._json.fast
else:
    sys.modules["cellwright.document._json.fast"] = None
for name, case in CASES.items():
    try:
        Notebook(case.data).revision
    except CellwrightError:
        pass
print("done")
"""


@pytest.mark.parametrize("which", ["msgspec", "standard library"])
@pytest.mark.all
def test_the_whole_table_fits_into_little_memory(which: str) -> None:
    """Nothing in it makes a parser overflow its stack or eat the machine."""
    limit = 400 * 2**20

    def restrict() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", CHILD, which],
        cwd=ROOT,
        preexec_fn=restrict,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr[-2000:]
