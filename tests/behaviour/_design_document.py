"""The design's promises about the document: lossless, durable, edited as data, merged by cell."""

from __future__ import annotations

from tests.behaviour.promise import NotYet, row

# fmt: off
ROWS = (
    # Lossless
    row("D-001", "§4", "A save without a change is byte-identical, for every notebook of the corpus", NotYet("document")),
    row("D-002", "§4", "Replacing a cell leaves every byte outside it as it was, for every notebook of the corpus", NotYet("document")),
    row("D-003", "§4", "Inserting a cell leaves every other cell's bytes as they were, for every notebook of the corpus", NotYet("document")),
    row("D-004", "§4", "Deleting a cell leaves every other cell's bytes as they were, for every notebook of the corpus", NotYet("document")),
    row("D-005", "§4", "Moving a cell leaves its own bytes and every other cell's as they were, for every notebook of the corpus", NotYet("document")),
    row("D-006", "§4", "A metadata edit leaves every byte outside that metadata as it was, for every notebook of the corpus", NotYet("document")),
    row("D-007", "§4", "The same holds for thousands of generated notebooks in generated styles", NotYet("document")),
    row("D-008", "§4", "Indentation is kept: 0 to 8 spaces, tabs, minified, or mixed", NotYet("document")),
    row("D-009", "§4", "Key order and the spacing around colons and commas are kept", NotYet("document")),
    row("D-010", "§4", "Escapes are kept as they are spelled, and so is non-ASCII text that is not escaped", NotYet("document")),
    row("D-011", "§4", "Numbers are kept as they are spelled: 1e400, 0.10, integers of any length", NotYet("document")),
    row("D-012", "§4", "A source written as a string or as an irregular list stays so in every untouched cell", NotYet("document")),
    row("D-013", "§4", "Line endings are kept, CRLF and mixed ones too", NotYet("document")),
    row("D-014", "§4", "A byte order mark is accepted and kept", NotYet("document")),
    row("D-015", "§4", "A missing final newline stays missing, and one that is there stays", NotYet("document")),
    row("D-016", "§4", "Unknown fields are kept at every level", NotYet("document")),
    row("D-017", "§4", "A new cell takes on the file's own style", NotYet("document")),

    # What we write
    row("D-018", "§4", "Every line of a source list but the last keeps its newline, split at \\n alone; empty source is []", NotYet("document")),
    row("D-019", "§4", "New code cells get execution_count null and outputs []; markdown and raw cells never carry them", NotYet("document")),
    row("D-020", "§4", "A new cell gets a valid, unused id in files that have ids, and none in older ones", NotYet("document")),
    row("D-021", "§4", "A new file is nbformat 4.5 with indent 1, a final newline and ids of 8 hex digits", NotYet("document")),
    row("D-022", "§4", "to_bytes gives exactly what write puts into the file", NotYet("document")),

    # Edits are data
    row("D-023", "§4", "Every edit has a typed class and a JSON shape that say the same, both ways", NotYet("document")),
    row("D-024", "§4", "A list of edits is applied as a whole or not at all", NotYet("document")),
    row("D-025", "§4", "The inverse of any change gives the earlier bytes back", NotYet("document")),
    row("D-026", "§4", "All references of a list resolve once, against the notebook before the list", NotYet("document")),
    row("D-027", "§4", "`at: N` is before the cell that had index N", NotYet("document")),
    row("D-028", "§4", "Several inserts at one place keep the order of the list", NotYet("document")),
    row("D-029", "§3", "An insert with no place given goes to the end", NotYet("document")),
    row("D-030", "§4", "replace sets the source and keeps id, metadata, outputs and count", NotYet("document")),
    row("D-031", "§4", "replace with a type changes the type, and the fields that belong to it", NotYet("document")),
    row("D-032", "§4", "replace with outputs: clear empties outputs and count", NotYet("document")),
    row("D-033", "§4", "replace_text wants its text exactly once, or exactly `count` times, and refuses otherwise", NotYet("document")),
    row("D-034", "§4", "insert takes type, id and metadata, and one of after, before and at", NotYet("document")),
    row("D-035", "§4", "delete removes the cell and nothing else", NotYet("document")),
    row("D-036", "§4", "move takes a cell to after, before or at another place, its outputs with it", NotYet("document")),
    row("D-037", "§4", "split cuts a cell in two at a line", NotYet("document")),
    row("D-038", "§4", "merge joins cells into the first of them", NotYet("document")),
    row("D-039", "§4", "set_type changes the type alone and keeps source, id and metadata", NotYet("document")),
    row("D-040", "§4", "set_metadata sets a cell's metadata, or the notebook's when no cell is named", NotYet("document")),
    row("D-041", "§3", "set_metadata merges by RFC 7396: recursive, null removes; merge is true when absent, false replaces", NotYet("document")),
    row("D-042", "§4", "clear_outputs clears the named cells, or all of them", NotYet("document")),
    row("D-043", "§4", "splice replaces a run of cells by others", NotYet("document")),
    row("D-044", "§3", "Explicit nulls in cells that arrive by splice are dropped", NotYet("document")),
    row("D-045", "§4", "An edit that makes no sense is INVALID_EDIT and names its place in the list", NotYet("document")),
    row("D-046", "§4", "A change shows itself as a unified diff that knows cells", NotYet("document")),
    row("D-047", "§3", "Outputs stay after a source edit unless they are asked to go", NotYet("document")),

    # Naming a cell
    row("D-048", "§3", "A reference is an exact id, then cell-N, then an integer; negative counts from the end", NotYet("document")),
    row("D-049", "§3", "An id that looks like a number wins over the index", NotYet("document")),
    row("D-050", "§3", "An unknown cell is CELL_NOT_FOUND with near misses, never a guess", NotYet("document")),
    row("D-051", "§3", "An id that two cells have is AMBIGUOUS_CELL and lists both", NotYet("document")),
    row("D-052", "§3", "Every cell has a handle that names it again, with or without an id", NotYet("document")),

    # Revisions and conflicts
    row("D-053", "§4", "A cell's hash depends on its type and source alone", NotYet("document")),
    row("D-054", "§4", "The revision changes with ids, order, types and sources of cells", NotYet("document")),
    row("D-055", "§4", "The revision does not change with outputs, counts and metadata", NotYet("document")),
    row("D-056", "§4", "An edit whose `expect` is not the cell's hash is CONFLICT, shows what the cell holds now, and applies nothing", NotYet("document")),
    row("D-057", "§4", "With a base, a touched cell that changed since is CONFLICT, naming the cells and what they hold now", NotYet("document")),
    row("D-058", "§4", "With a base, changes elsewhere are merged", NotYet("document")),
    row("D-059", "§4", "A base that nobody remembers is UNKNOWN_REVISION, never resolved against the file", NotYet("document")),
    row("D-060", "§4", "A file that changed after it was read is noticed under the lock, before the rename, by its bytes", NotYet("document")),

    # Three-way merge
    row("D-061", "§4", "Cells are aligned by unique id", NotYet("document")),
    row("D-062", "§4", "Cells without a unique id are aligned by the longest common sequence of hashes, then by position", NotYet("document")),
    row("D-063", "§4", "The merged order is the current one; the other side's moves and inserts follow their base predecessor", NotYet("document")),
    row("D-064", "§4", "A cell deleted on one side and edited on the other is a conflict", NotYet("document")),
    row("D-065", "§4", "A cell edited differently on both sides is a conflict that shows all three", NotYet("document")),
    row("D-066", "§4", "The same change on both sides is no conflict", NotYet("document")),
    row("D-067", "§4", "Outputs never conflict: the side that changed them wins, otherwise the current one", NotYet("document")),

    # Durable
    row("D-068", "§4", "A save writes a unique temp file beside the target, fsyncs it, renames it, and fsyncs the folder, in this order", NotYet("document")),
    row("D-069", "§4", "Mode, owner and extended attributes survive a save, or it is refused", NotYet("document")),
    row("D-070", "§4", "A save through a symlink changes its target and leaves the link a link", NotYet("document")),
    row("D-071", "§4", "A file with several hard links is refused unless the caller agrees to split them", NotYet("document")),
    row("D-072", "§4", "A read-only file is refused and unchanged", NotYet("document")),
    row("D-073", "§4", "Temp files that a killed save left are cleaned by the next one", NotYet("document")),
    row("D-074", "§4", "A failing save says so, and the file is untouched", NotYet("document")),
    row("D-075", "§4", "A failure after the rename is DURABILITY_UNCONFIRMED, an error of its own", NotYet("document")),
    row("D-076", "§4", "What cannot be encoded, such as a lone surrogate, fails before any file is touched", NotYet("document")),
    row("D-077", "§7", "Writers of ours are serialised by a lock in the runtime directory, keyed by real path", NotYet("document")),
    row("D-078", "§7", "Waiting for the lock is bounded, and a dead holder frees it", NotYet("document")),
    row("D-079", "§4", "Killed at any step of a save, the file holds the old bytes or the new ones", NotYet("document")),
    row("D-080", "§4", "No injected error of the system is ever reported as a success", NotYet("document")),
    row("D-081", "§4", "Many processes and an outside editor on one file: every edit is in it, or its caller got CONFLICT", NotYet("document")),

    # Any input
    row("D-082", "§3", "nbformat 4.0 to 4.4 is edited as it is: no ids written, no version bumped, cell-N handles", NotYet("document")),
    row("D-083", "§3", "nbformat 2 and 3 is read through conversion and never edited in place", NotYet("document")),
    row("D-084", "§3", "An explicit upgrade makes an old notebook one that can be edited", NotYet("document")),
    row("D-085", "§4", "Unknown minor and major versions are accepted exactly or refused by name", NotYet("document")),
    row("D-086", "§4", "A key that stands twice never makes an edit hit the wrong one", NotYet("document")),
    row("D-087", "§4", "Duplicate, missing and invalid ids do not keep a notebook from being read and edited", NotYet("document")),
    row("D-088", "§4", "NaN and Infinity are read and kept, and never newly written", NotYet("document")),
    row("D-089", "§4", "Nesting of 1000 and more, and integers of thousands of digits, raise no traceback", NotYet("document")),
    row("D-090", "§4", "Invalid UTF-8 and UTF-16 are refused by name", NotYet("document")),
    row("D-091", "§4", "An empty file, a folder, a FIFO and a device are refused at once, by name", NotYet("document")),
    row("D-092", "§4", "A file over the size limit is refused without being read", NotYet("document")),
    row("D-093", "§4", "A broken cell is named by its position while the others can be used", NotYet("document")),
    row("D-094", "§4", "At least 150 malformed inputs are each accepted exactly or refused by a one-line named error", NotYet("document")),

    # Validity and cost
    row("D-095", "§4", "A notebook that was valid is valid against its own schema after any edit", NotYet("document")),
    row("D-096", "§4", "The edited part is valid even if the rest was not", NotYet("document")),
    row("D-097", "§1", "The standard-library scanner and msgspec read every notebook alike", NotYet("document")),
    row("D-098", "§1", "import cellwright imports nothing heavy, and what it does not import is pinned", NotYet("document")),
    row("D-099", "§1", "import cellwright costs at most twice the CPU of an empty Python, and reading 20 cells at most six times", NotYet("document")),
)
# fmt: on
