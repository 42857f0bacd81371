"""S4, the Manipulator Protocol v1: a kernel that edits its own notebook."""

from __future__ import annotations

from tests.behaviour.promise import NotYet, row

# fmt: off
ROWS = (
    # Messages
    row("S4-001", "7", "Kernel code manipulates its notebook over a comm", NotYet("manipulator protocol")),
    row("S4-002", "9", "The comm's target is jupyter.notebook.manipulator.v1", NotYet("manipulator protocol")),
    row("S4-003", "11", "The protocol's version is 1", NotYet("manipulator protocol")),
    row("S4-004", "17-25", "A request is method, request_id and params", NotYet("manipulator protocol")),
    row("S4-005", "27-41", "A response is request_id and status, with result only if ok and error only if not", NotYet("manipulator protocol")),
    row("S4-006", "36-38", "An error has a message and a code", NotYet("manipulator protocol")),

    # Reading
    row("S4-007", "45-66", "get_cell_count answers with the count", NotYet("manipulator protocol")),
    row("S4-008", "68-99", "get_notebook_metadata answers with the notebook's metadata", NotYet("manipulator protocol")),
    row("S4-009", "103-113", "get_cell_range takes a start that counts and an end that does not", NotYet("manipulator protocol")),
    row("S4-010", "123-141", "A cell is type, source and metadata; only code cells have outputs and a count", NotYet("manipulator protocol")),
    row("S4-011", "126", "A source is a string or a list of strings", NotYet("manipulator protocol")),
    row("S4-012", "130", "execution_count may be null", NotYet("manipulator protocol")),
    row("S4-013", "144-153", "A start after the end is INVALID_RANGE, 'Invalid cell range: start=10, end=5'", NotYet("manipulator protocol")),
    row("S4-014", "156-165", "An end past the cells is OUT_OF_BOUNDS, 'Cell range out of bounds: end=100 exceeds cell count of 42'", NotYet("manipulator protocol")),
    row("S4-015", "-", "An empty range, a start at the count, negatives and what is no integer have a stated answer", NotYet("manipulator protocol")),

    # Splicing
    row("S4-016", "170-194", "splice_cell_range takes start, delete_count and cells", NotYet("manipulator protocol")),
    row("S4-017", "197-201", "A splice deletes at start and then inserts there; either part may be empty", NotYet("manipulator protocol")),
    row("S4-018", "204-206", "The three examples hold: delete two, insert one, replace one", NotYet("manipulator protocol")),
    row("S4-019", "214-217", "affected_range is start and start plus the number of inserted cells", NotYet("manipulator protocol")),
    row("S4-020", "223-231", "A bad splice is INVALID_SPLICE_PARAMS, 'Invalid splice parameters: start=10 is out of bounds'", NotYet("manipulator protocol")),

    # Metadata
    row("S4-021", "234-253", "set_notebook_metadata takes metadata and merge", NotYet("manipulator protocol")),
    row("S4-022", "251", "merge true merges with what is there", NotYet("manipulator protocol")),
    row("S4-023", "251", "merge false replaces all of it", NotYet("manipulator protocol")),
    row("S4-024", "-", "merge absent is true", NotYet("manipulator protocol")),
    row("S4-025", "256-263", "The result is an empty object", NotYet("manipulator protocol")),
    row("S4-026", "265-275", "Bad metadata is INVALID_METADATA, 'Failed to update notebook metadata: …'", NotYet("manipulator protocol")),

    # Executing
    row("S4-027", "279-291", "execute_cell_range takes start and end", NotYet("manipulator protocol")),
    row("S4-028", "293-300", "It answers ok when the cells were executed", NotYet("manipulator protocol")),
    row("S4-029", "302-324", "It refuses ranges as get_cell_range does", NotYet("manipulator protocol")),
    row("S4-030", "326-336", "A failing cell is EXECUTION_FAILED, 'Cell execution failed at index 3: SyntaxError'", NotYet("manipulator protocol")),

    # Codes
    row("S4-031", "342-350", "There are nine error codes", NotYet("manipulator protocol")),
    row("S4-032", "346", "Malformed cells are INVALID_CELL_DATA", NotYet("manipulator protocol")),
    row("S4-033", "348", "An unknown method is UNKNOWN_METHOD", NotYet("manipulator protocol")),
    row("S4-034", "349", "Trouble of our own is INTERNAL_ERROR", NotYet("manipulator protocol")),
    row("S4-035", "350", "No notebook is NO_ACTIVE_NOTEBOOK", NotYet("manipulator protocol")),

    # The conversation
    row("S4-036", "355", "The kernel opens the comm", NotYet("manipulator protocol")),
    row("S4-037", "356", "The frontend listens for the target and accepts", NotYet("manipulator protocol")),
    row("S4-038", "359-360", "Answers come on the same comm", NotYet("manipulator protocol")),
    row("S4-039", "361", "Each answer carries the request's id", NotYet("manipulator protocol")),
    row("S4-040", "362", "A request times out after 30 s", NotYet("manipulator protocol")),
    row("S4-041", "365", "What cannot be processed is answered with status error", NotYet("manipulator protocol")),
    row("S4-042", "366", "A timeout raises in the kernel", NotYet("manipulator protocol")),
    row("S4-043", "367", "The comm stays open after errors", NotYet("manipulator protocol")),

    # Formats and notes
    row("S4-044", "371-377", "Cells follow nbformat", NotYet("manipulator protocol")),
    row("S4-045", "379-385", "Metadata follows nbformat, custom fields included", NotYet("manipulator protocol")),
    row("S4-046", "389", "Concurrent requests are safe", NotYet("manipulator protocol")),
    row("S4-047", "391", "Cells are validated before anything is applied", NotYet("manipulator protocol")),
    row("S4-048", "393", "Changes can be undone and redone", NotYet("manipulator protocol")),
    row("S4-049", "395", "Changes are made in memory, and saving is the user's, by a stated policy", NotYet("manipulator protocol")),
    row("S4-050", "397", "Changes are told to whoever watches the notebook", NotYet("manipulator protocol")),
    row("S4-051", "399", "Request ids are unique within a comm: a UUID, or a prefix and a counter", NotYet("manipulator protocol")),

    # What may come later
    row("S4-052", "405", "A later version can manipulate cell outputs", NotYet("manipulator protocol")),
    row("S4-053", "406", "A later version can restart and interrupt the kernel", NotYet("manipulator protocol")),
    row("S4-054", "407", "A later version can save and rename the notebook", NotYet("manipulator protocol")),
    row("S4-055", "408", "A later version can change metadata in bulk", NotYet("manipulator protocol")),
    row("S4-056", "409", "A later version can change a cell's metadata without replacing the cell", NotYet("manipulator protocol")),

    # Edges of ours
    row("S4-057", "-", "The Runner, which has no comms, says so instead of hanging", NotYet("manipulator protocol")),
    row("S4-058", "-", "A mode that forbids an edit or a run forbids it over the comm too", NotYet("manipulator protocol")),
)
# fmt: on
