"""The folder with a notebook that the unit tests of the command line have, too."""

from tests.unit.cli.conftest import folder

__all__ = ["folder"]
