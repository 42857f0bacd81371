"""The kernels that can be started here, described for people and tools."""

from __future__ import annotations

from cellwright.errors import KernelMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.config.settings import Settings


def describe_specs(
    folder: str, environ: Mapping[str, str], settings: Settings
) -> list[dict[str, Any]]:
    """Every kernel, with `default` set for the one that a notebook in `folder` would get.

    If that one is not there, or has no kernel, its place is taken by the reason.
    """
    from cellwright.kernel.discovery import choose_kernel, list_specs

    chosen, why, problem = None, "", None
    try:
        choice = choose_kernel(folder, env=environ, setting=settings.kernel or None)
        chosen, why = choice.spec, choice.why
    except KernelMissing as error:
        problem = error
    specs = list_specs(environ, chosen.python if chosen else None)
    if chosen is not None and all(spec.command != chosen.command for spec in specs):
        specs = [chosen, *specs]
    rows: list[dict[str, Any]] = [
        {
            "name": spec.name,
            "display_name": spec.display_name,
            "language": spec.language,
            "origin": spec.origin,
            "python": spec.python,
            "folder": spec.folder,
            "default": chosen is not None and spec.command == chosen.command,
            "why": why if chosen is not None and spec.command == chosen.command else None,
        }
        for spec in specs
    ]
    if problem is not None:
        rows.insert(0, {"default": True, "problem": problem.message, "hint": problem.hint})
    return rows
