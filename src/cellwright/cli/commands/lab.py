"""`cellwright lab`: JupyterLab, with notebooks that agents and people share."""

from __future__ import annotations

import os
import sys

import click

from cellwright import server
from cellwright.cli.options import CommandCall, common, require_package, resolve_root

_MISSING = (
    "this installation has no extension of JupyterLab, so agents see the notebooks that you open"
    " there as files; `./dev lab` in a checkout builds it, for an installation after that"
)
_EXTENSION = "--ServerApp.jpserver_extensions={'cellwright.server': True}"


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[NB] [-- JUPYTER OPTIONS]")
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
@common
def lab_command(call: CommandCall, words: tuple[str, ...], *, no_browser: bool) -> None:
    """Start JupyterLab in this folder, and open NB.

    Agents, terminals and you then work in one notebook with one kernel. What follows `--` goes to
    JupyterLab.

    \b
    cellwright lab analysis.ipynb
    cellwright lab --no-browser -- --port 9000
    """
    here = call.here()
    notebook = words[0] if words and not words[0].startswith("-") else None
    require_package("jupyterlab", "JupyterLab", "lab")
    root = resolve_root(here.root, here.cwd)
    command = [sys.executable, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={root}", _EXTENSION]
    built = os.path.join(os.path.dirname(server.__file__), "labextensions")  # noqa: PTH118, PTH120
    if os.path.exists(built):  # noqa: PTH110
        # We run from the sources, where `./dev lab` has built it; a wheel installs it for Jupyter.
        command.append(f"--LabApp.extra_labextensions_path={built}")
    elif not is_extension_installed():
        call.output.warn([_MISSING])
    if notebook is not None:
        command.append(f"--LabApp.default_url=/lab/tree/{_find_inside(notebook, root)}")
    if no_browser:
        command.append("--no-browser")
    os.execv(command[0], [*command, *words[notebook is not None :]])  # noqa: S606  # our own interpreter


def is_extension_installed() -> bool:
    """Return whether JupyterLab finds our extension; a wheel that was built without Node has none."""
    from jupyter_core.paths import jupyter_path

    return any(
        os.path.isdir(os.path.join(place, "cellwright-lab"))  # noqa: PTH112, PTH118
        for place in jupyter_path("labextensions")
    )


def _find_inside(notebook: str, root: str) -> str:
    """Return the path of a notebook as the server knows it.

    Raises:
        NotebookNotFound: there is no such file.
        OutsideRoot: it is not in the folder that is served.
    """
    from urllib.parse import quote

    from cellwright.errors import NotebookNotFound, OutsideRoot

    real = os.path.realpath(notebook)
    if not os.path.exists(real):  # noqa: PTH110
        raise NotebookNotFound(notebook)
    inside = os.path.relpath(real, os.path.realpath(root))
    if inside.startswith(".."):
        raise OutsideRoot(notebook, root)
    return quote(inside)
