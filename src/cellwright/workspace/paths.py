"""Which file a caller means, and whether it may be touched."""

from __future__ import annotations

import contextlib
import os

from cellwright.document.disk.load import close
from cellwright.document.disk.paths import PinnedPath, RealPath
from cellwright.errors import OutsideRoot, UnreadableFile, explain_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN = (".", "__pycache__", "node_modules")
"""How the names of folders and files begin that listings leave out."""
_ATTEMPTS = 20
_NOWHERE = "/proc/self/fd/none"


def find_folder() -> str:
    """The working folder; raises `SystemRefused` if it was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109  # hot path: no pathlib
    except OSError as error:
        raise explain_exception(error) from None


def real_path(path: str) -> str:
    """The path without links, as far as it exists.

    Raises:
        UnreadableFile: its links are turned faster than one can look.
    """
    for _ in range(_ATTEMPTS):
        try:
            return os.path.realpath(path)
        except OSError as error:  # a link that is none any more, by the time it is read
            reason = error.strerror or str(error)
        except ValueError:  # a NUL, or what no file name can hold
            raise UnreadableFile(path, "it is no path") from None
    raise UnreadableFile(path, reason)


def resolve(path: str, cwd: str) -> str:
    """The absolute path of what a caller named.

    Dots are taken out unless they follow a link: only the system knows where `link/..` leads.
    """
    whole = os.path.join(cwd, path)  # noqa: PTH118  # hot path: no pathlib
    short = os.path.normpath(whole)
    if short == whole:
        return whole
    return short if real_path(short) == real_path(whole) else whole


def leads_inside(path: str, root: str | None) -> bool:
    """Whether the real path lies in the root; without a root every one does."""
    return root is None or _is_inside(real_path(path), root)


def confine(path: str, root: str | None) -> RealPath:
    """The real path; raises `OutsideRoot` unless it lies in the root. No root confines nothing."""
    real = RealPath(real_path(path))
    if root is not None and not _is_inside(real, root):
        raise OutsideRoot(path, root)
    return real


@contextlib.contextmanager
def hold_folder(path: str, root: str | None, name: str) -> Iterator[PinnedPath | None]:
    """The file at a path, by a descriptor of a folder that lies in the root.

    What a path leads to may change between the look and the use. Where an open folder is, is
    told by the system itself. None without a root, or on systems that cannot tell.

    Raises:
        OutsideRoot: it leads out of the root.
    """
    if root is None:
        yield None
        return
    real = real_path(path)
    folder, file = os.path.split(real)
    try:
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except AttributeError:  # a system without such descriptors
        confine(path, root)
        yield None
        return
    except (OSError, ValueError):
        confine(path, root)
        # And not the path: it may lead out by now.
        yield PinnedPath(f"{_NOWHERE}/{file}", name, real)
        return
    try:
        reach = f"/proc/self/fd/{descriptor}"
        try:
            where = os.readlink(reach)  # noqa: PTH115
        except OSError:  # no /proc in this sandbox
            confine(path, root)
            yield None
            return
        if not _is_inside(where, root):
            raise OutsideRoot(path, root)
        yield PinnedPath(f"{reach}/{file}", name, real)
    finally:
        close(descriptor)


def _is_inside(real: str, root: str) -> bool:
    """Whether a real path lies in a root."""
    # A real path that begins with the root as it is written shows that the root has no links.
    return _begins_with(real, root) or _begins_with(real, real_path(root))


def _begins_with(real: str, top: str) -> bool:
    # Compared by whole components: `/data-evil` does not lie in `/data`.
    return real == top or real.startswith(top.rstrip("/") + "/")
