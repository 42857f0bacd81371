"""`python -m cellwright`."""

from cellwright.cli.main import entry

entry()
