"""`python -m cellwright`."""

from cellwright.cli import entry

entry()
