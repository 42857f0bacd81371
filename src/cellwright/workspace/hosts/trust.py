"""Jupyter's trust: a notebook that its user had signed stays signed when our outputs land in it.

Jupyter shows the HTML and JavaScript of a notebook only if the user's notary has signed exactly
what the file holds; the signatures are in a database in Jupyter's data folder. A run changes what
the file holds. If it was signed before, and nothing but outputs of our own runs came to it, it is
signed anew; otherwise it is left as it is. Nothing is ever created here.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from contextlib import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SELECT = "SELECT 1 FROM nbsignatures WHERE algorithm = ? AND signature = ? LIMIT 1"


# Files known not to be signed, as they were, as long as the database is the same. To work out a
# signature takes as long as to parse the notebook; an unsigned one would pay for it with every run.
_unsigned: OrderedDict[tuple[str, tuple[int, int]], None] = OrderedDict()
_MOST_UNSIGNED = 256


class Notary:
    """The user's notary: the secret and the database in one of Jupyter's folders."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._database = os.path.join(folder, "nbsignatures.db")  # noqa: PTH118
        self._secret = os.path.join(folder, "notebook_secret")  # noqa: PTH118

    @classmethod
    def find(cls) -> Notary | None:
        """The one in Jupyter's data folder; None if nothing was ever signed there."""
        from jupyter_core.paths import jupyter_data_dir

        notary = cls(jupyter_data_dir())
        return notary if notary.exists() else None

    def exists(self) -> bool:
        """Whether both its files are there; without them Jupyter's own would make them."""
        return os.path.isfile(self._database) and os.path.isfile(self._secret)  # noqa: PTH113

    def has_signed(self, content: bytes) -> bool:
        """Whether a notebook with exactly this content is trusted; also False in doubt."""
        try:
            key = self._key(content)
            # Read-only, since Jupyter's own way to open it replaces one that is damaged.
            address = f"{_file_uri(self._database)}?mode=ro"
            with closing(sqlite3.connect(address, timeout=5, uri=True)) as database:
                return database.execute(_SELECT, key).fetchone() is not None
        except Exception:  # noqa: BLE001  # trust is a courtesy, and no run may fail for it
            return False

    def leave_unsigned(self, file: str | None) -> None:
        """What came of an unsigned notebook is not signed either, and need not be looked up.

        `file` is the signature of the file that holds it now.
        """
        mark = self._mark(file)
        if mark is not None:
            _unsigned[mark] = None
        while len(_unsigned) > _MOST_UNSIGNED:
            _unsigned.popitem(last=False)

    def is_left_unsigned(self, file: str | None) -> bool:
        """Whether a file is known to hold what is not signed."""
        return self._mark(file) in _unsigned

    def _mark(self, file: str | None) -> tuple[str, tuple[int, int]] | None:
        if file is None:
            return None
        try:
            status = os.stat(self._database)  # noqa: PTH116
        except OSError:
            return None
        return file, (status.st_mtime_ns, status.st_size)

    def sign(self, content: bytes) -> bool:
        """Trust a notebook with this content; returns whether it is trusted now."""
        if not self.exists():
            return False
        try:
            from nbformat.sign import SQLiteSignatureStore

            algorithm, digest = self._key(content)
            with closing(SQLiteSignatureStore(self._database)) as store:
                store.store_signature(digest, algorithm)
        except Exception:  # noqa: BLE001  # as above
            return False
        return self.has_signed(content)

    def _key(self, content: bytes) -> tuple[str, str]:
        """The algorithm and the signature of a notebook, as Jupyter works it out."""
        from nbformat import v4
        from nbformat.sign import MemorySignatureStore, NotebookNotary

        notary: Any = NotebookNotary(data_dir=self._folder, store_factory=MemorySignatureStore)
        return notary.algorithm, notary.compute_signature(v4.reads(content.decode()))


def _file_uri(path: str) -> str:
    from urllib.parse import quote

    return f"file:{quote(path)}"
