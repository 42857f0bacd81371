"""How a kernel finds the protocol's Python client, also where Cellwright is not installed."""

from __future__ import annotations

import os
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@cache  # it is asked for at every run
def kernel_path() -> str | None:
    """The folder that has `cellwright_kernel`, and `cellwright` for `%load_ext`, and no more.

    The client's own folder would do too, but beside it lie all packages of this environment, of
    which a kernel of another one must not see any.
    """
    from importlib.util import find_spec

    spec = find_spec("cellwright_kernel")
    found = list((spec and spec.submodule_search_locations) or ())
    return os.path.join(found[0], "path") if found else None  # noqa: PTH118


def add_kernel_path(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a kernel, with that folder at the end of its PYTHONPATH."""
    folder = kernel_path()
    known = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    if folder is None or folder in known:
        return dict(env)
    return {**env, "PYTHONPATH": os.pathsep.join([*known, folder])}
