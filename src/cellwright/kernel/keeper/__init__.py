"""Processes that never outlive us: a keeper for each, and a sweep for what slipped through.

`start_kept` starts a command under the keeper script. Whatever ends us, `kill -9` included, the
keeper kills the command and all that it started. If the keeper itself is killed, we sweep.
Guaranteed on Linux; elsewhere only the command's process group is killed.
"""

from cellwright.kernel.keeper.marks import MARK_VARIABLE, is_stale, new_mark, sweep_stale
from cellwright.kernel.keeper.owner import KeptProcess, start_kept

__all__ = ["MARK_VARIABLE", "KeptProcess", "is_stale", "new_mark", "start_kept", "sweep_stale"]
