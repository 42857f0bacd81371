"""What a build adds: links that work in the long description, and JupyterLab's extension.

`./dev lab` builds the extension from `lab/`. An installation from the sources works without it: then
JupyterLab shows notebooks as ever, and the rest of Cellwright needs no Node.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

BUILT = Path("src/cellwright/server/labextensions/cellwright-lab")
PLACE = "share/jupyter/labextensions/cellwright-lab"
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Makes the links of the README absolute: an index has no other file of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, which pyproject.toml leaves to us."""
        text = Path(self.root, "README.md").read_text("utf-8")
        base = metadata["urls"]["Repository"]

        def make_absolute(link: re.Match[str]) -> str:
            kind = "raw" if link[1] else "blob"  # a picture itself, or the page of a file
            return f"{link[1]}{link[2]}({base}/{kind}/main/{link[3]})"

        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _LINK.sub(make_absolute, text),
        }


class LabExtension(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the extension to a wheel, if it was built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folder, once per wheel."""
        del version
        if (Path(self.root) / BUILT / "package.json").is_file():
            build_data["shared_data"][str(BUILT)] = PLACE
