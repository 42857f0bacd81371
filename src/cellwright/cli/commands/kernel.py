"""Sessions and their kernels: `cellwright kernel` and `sessions`, and the artifacts they store."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import CommandCall, common
from cellwright.cli.output import is_terminal, one_line, write_bytes
from cellwright.errors import ArtifactNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.outputs.artifacts import Artifact, ArtifactStore
    from cellwright.workspace.api.answers import KernelAnswer, KernelSpecView, SessionView, Variable


_session = click.argument("session", default="default")


@click.group()
def kernel_command() -> None:
    """List kernels, or control the kernel of a session.

    \b
    cellwright kernel specs
    """


@kernel_command.command()
@click.option("--probe", is_flag=True, help="Start interpreters to see whether they have one.")
@click.option("--server", metavar="URL", help="Those of a Jupyter server or gateway.")
@common
def specs(call: CommandCall, *, probe: bool, server: str | None) -> None:
    """List the kernels that can be started here; `*` marks the default for notebooks.

    Without --probe nothing is started.

    \b
    cellwright kernel specs
    cellwright kernel specs --server http://127.0.0.1:8888/
    """
    with call.workspace() as workspace:
        found = workspace.kernel_specs(probe=probe, server=server)
    call.output.data({"specs": found}, map(_spec_row, found), styled=True)


def _spec_row(spec: KernelSpecView) -> str:
    if spec.problem is not None:
        return f"* {one_line(spec.problem)}\n  {one_line(spec.hint or '')}\n"
    mark = "*" if spec.default else " "
    place = one_line(spec.server or spec.python or spec.folder or "")
    return f"{mark} {one_line(spec.name or ''):16} {one_line(spec.language or ''):10} {place}\n"


def _act_on_kernel(call: CommandCall, action: str, session: str) -> KernelAnswer:
    with call.workspace() as workspace:
        return workspace.kernel(action, session)


@kernel_command.command()
@_session
@common
def status(call: CommandCall, session: str) -> None:
    """Show the state of a session's kernel.

    \b
    cellwright kernel status mine
    """
    found = _act_on_kernel(call, "status", session)
    call.output.data(found, session_rows([found]), styled=True)


@kernel_command.command()
@_session
@common
def interrupt(call: CommandCall, session: str) -> None:
    """Interrupt the running cell.

    \b
    cellwright kernel interrupt mine
    """
    found = _act_on_kernel(call, "interrupt", session)
    call.output.data(found, "Interrupted\n" if found.interrupted else "Nothing was running\n")


@kernel_command.command()
@_session
@common
def restart(call: CommandCall, session: str) -> None:
    """Restart the kernel; its variables are lost.

    \b
    cellwright kernel restart mine
    """
    call.output.data(
        _act_on_kernel(call, "restart", session), "Restarted; all variables are lost\n"
    )


@kernel_command.command()
@_session
@common
def variables(call: CommandCall, session: str) -> None:
    """List the variables of a Python session.

    \b
    cellwright kernel variables mine
    """
    found = _act_on_kernel(call, "variables", session)
    call.output.data(found, map(_variable_row, found.variables or ()), styled=True)


def _variable_row(variable: Variable) -> str:
    size = variable.size or ""
    value = one_line(variable.value)[:60]
    return f"{one_line(variable.name):20} {one_line(variable.type):14} {size:10} {value}\n"


@kernel_command.command()
@_session
@common
def shutdown(call: CommandCall, session: str) -> None:
    """Shut down a session's kernel and all processes that it started.

    \b
    cellwright kernel shutdown mine
    """
    call.output.data(_act_on_kernel(call, "shutdown", session), "Shut down\n")


@click.command()
@common
def sessions_command(call: CommandCall) -> None:
    """List running sessions and their kernels.

    Without an engine, a session ends with the process that uses it.

    \b
    cellwright sessions
    """
    with call.workspace() as workspace:
        sessions = workspace.sessions()
    call.output.data({"sessions": sessions}, session_rows(sessions), styled=True)
    if not sessions:
        call.output.say("No sessions are running")


def session_rows(sessions: Sequence[SessionView]) -> list[str]:
    """Render sessions, one a line; those of notebooks have their paths as names."""
    names = [one_line(each.session) for each in sessions]
    kernels = [one_line(each.kernel or "no kernel") for each in sessions]
    wide, kind = (max(map(len, column), default=0) for column in (names, kernels))
    return [
        f"{name:{wide}}  {each.state:6}  {kernel:{kind}}  {one_line(each.cwd)}\n"
        for each, name, kernel in zip(sessions, names, kernels, strict=True)
    ]


@click.command()
@click.argument("artifact", required=False)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Start at this byte.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many bytes.")
@click.option("--delete", is_flag=True, help="Delete it.")
@common
def artifact_command(
    call: CommandCall, artifact: str | None, offset: int, limit: int | None, *, delete: bool
) -> None:
    """Print a stored output or picture; without an id, list all that are stored.

    \b
    cellwright artifact
    cellwright artifact artifact://k3m9x2 --offset 1000 --limit 500
    cellwright artifact k3m9x2 > picture.png
    """
    with call.here() as workspace:
        caller = workspace.caller
        store = caller.hub.artifacts
        if artifact is not None and not caller.knows(store.get(artifact).origin):
            raise ArtifactNotFound(artifact[:80])
        if artifact is None:
            from dataclasses import asdict

            found = [each for each in store.list() if caller.knows(each.origin)]
            data = {"artifacts": list(map(asdict, found))}
            call.output.data(data, map(_artifact_row, found), styled=True)
        elif delete:
            caller.require("edit", "delete an artifact")
            store.delete(artifact)
            call.output.data({"deleted": artifact}, "Deleted\n")
        elif call.output.as_json:
            call.output.data(workspace.artifact(artifact, offset, limit or 65536), "")
        else:
            _print_artifact(call, store, artifact, offset, limit)


def _print_artifact(
    call: CommandCall, store: ArtifactStore, artifact: str, offset: int, limit: int | None
) -> None:
    facts = store.get(artifact)
    if is_terminal(sys.stdout) and not facts.mime.startswith("text/"):
        call.output.say(f"{facts}: redirect it to a file with `> FILE`")
        return
    left = facts.size - offset if limit is None else limit
    while left > 0:
        part = store.read(artifact, offset, min(left, 2**20))
        if is_terminal(sys.stdout):
            call.output.data(None, part.data.decode("utf-8", "replace"))
        else:
            write_bytes(part.data)
        left -= len(part.data)
        if part.next_offset is None:
            return
        offset = part.next_offset


def _artifact_row(artifact: Artifact) -> str:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(artifact.created, UTC).isoformat(timespec="seconds")[:19]
    name = one_line(f"{artifact.name} {artifact.origin}".strip())
    return f"{artifact.id}  {when}  {artifact.size:>12,}  {one_line(artifact.mime):16} {name}\n"
