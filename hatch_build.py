"""Put the built extension of JupyterLab into the wheel, where JupyterLab looks for it.

`./dev lab` builds it from `lab/`. An installation from the sources works without it: then JupyterLab
shows notebooks as ever, and the rest of Cellwright needs no Node.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = Path("src/cellwright/server/labextensions/cellwright-lab")
PLACE = "share/jupyter/labextensions/cellwright-lab"


class LabExtension(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the extension to a wheel, if it was built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folder, once per wheel."""
        del version
        if (Path(self.root) / BUILT / "package.json").is_file():
            build_data["shared_data"][str(BUILT)] = PLACE
