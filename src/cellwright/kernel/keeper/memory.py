"""Whether a kill was the system's, for want of memory.

The control group's own counter of such kills is asked, the whole machine's where there is none.
"""

from __future__ import annotations

from pathlib import Path

_MOST = 2**16


class MemoryKills:
    """Notices whether the system killed for memory since the last `note`."""

    def __init__(self) -> None:
        self._files = _counters()
        self._before = self._count()

    def note(self) -> None:
        """Count from here on."""
        self._before = self._count()

    def happened(self) -> bool:
        """Tell whether there was such a kill since."""
        return self._count() > self._before

    def _count(self) -> int:
        return sum(_read(file) for file in self._files)


def _counters() -> list[Path]:
    found = [file for file in _of_control_group() if file.exists()]
    return found or [Path("/proc/vmstat")]


def _of_control_group() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inner = path.lstrip("/")
        if not controllers:
            files.append(Path("/sys/fs/cgroup", inner, "memory.events"))
        elif "memory" in controllers.split(","):
            files.append(Path("/sys/fs/cgroup/memory", inner, "memory.oom_control"))
            # Inside a container the path may be the host's, and the mount our own group.
            files.append(Path("/sys/fs/cgroup/memory/memory.oom_control"))
    return files


def _read(file: Path) -> int:
    """Its count; this is done before every execution, so without the comforts of `pathlib`."""
    try:
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123
            text = opened.read(_MOST)
        for line in text.splitlines():
            if line.startswith(b"oom_kill "):
                return int(line[9:])
    except (OSError, ValueError):
        pass
    return 0
