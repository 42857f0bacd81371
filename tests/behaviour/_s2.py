"""S2, NotebookEdit: one tool that replaces, inserts and deletes cells."""

from __future__ import annotations

from tests.behaviour.promise import NotYet, row

# fmt: off
ROWS = (
    row("S2-001", "11", "An agent can create, edit and manage notebooks", NotYet("tools and MCP")),
    row("S2-002", "17-18", "A notebook is changed cell by cell", NotYet("document")),
    row("S2-003", "19", "Outputs of untouched cells stay", NotYet("document")),
    row("S2-004", "20", "Metadata of cells stays", NotYet("document")),

    # The tool's parameters and result
    row("S2-005", "32", "notebook_path is the absolute path of the notebook", NotYet("tools and MCP")),
    row("S2-006", "33", "cell_id is the cell's id, or a position", NotYet("tools and MCP")),
    row("S2-007", "34,50", "cell_type is code, markdown or raw", NotYet("tools and MCP")),
    row("S2-008", "36,51", "edit_mode is replace, insert or delete", NotYet("tools and MCP")),
    row("S2-009", "55", "cell_id is optional in the schema", NotYet("tools and MCP")),
    row("S2-010", "56", "cell_type is required for insert", NotYet("tools and MCP")),
    row("S2-011", "57", "new_source is required, except where nothing is written", NotYet("tools and MCP")),
    row("S2-012", "58", "edit_mode is replace when absent", NotYet("tools and MCP")),
    row("S2-013", "61-66", "The result is success, cell_id, cell_index and error", NotYet("tools and MCP")),

    # The notebook's structure
    row("S2-014", "69-83", "A notebook is nbformat, nbformat_minor, metadata and cells", NotYet("document")),
    row("S2-015", "77", "Cells have ids from nbformat 4.5 on", NotYet("document")),
    row("S2-016", "79", "A source may be a string or a list of strings", NotYet("document")),
    row("S2-017", "85-89", "Cell metadata may have id and tags, and any other key is kept", NotYet("document")),
    row("S2-018", "91-94", "Outputs are of four types: stream, execute_result, display_data and error", NotYet("document")),

    # What the tool says of itself
    row("S2-019", "102", "The tool is called NotebookEdit", NotYet("tools and MCP")),
    row("S2-020", "103-121", "Its description states the parameters, the operations and the notes", NotYet("tools and MCP")),
    row("S2-021", "114", "insert puts the cell after cell_id, or at the start without one", NotYet("tools and MCP")),
    row("S2-022", "118", "A cell's id survives an edit", NotYet("document")),
    row("S2-023", "119", "Its replace clears the outputs of a code cell", NotYet("history and command line")),
    row("S2-024", "120", "A cell is named by its position from 0 or by its id", NotYet("document")),

    # The editor
    row("S2-025", "141-143", "A relative path is resolved against the caller's working directory", NotYet("tools and MCP")),
    row("S2-026", "146-147", "A missing file answers 'Notebook not found'", NotYet("tools and MCP")),
    row("S2-027", "155-156", "A file that is no notebook answers 'Invalid notebook format'", NotYet("tools and MCP")),
    row("S2-028", "173", "Another edit_mode answers 'Invalid edit mode'", NotYet("tools and MCP")),
    row("S2-029", "176", "A failing edit writes nothing", NotYet("document")),
    row("S2-030", "179", "A new notebook is written with indent 1", NotYet("document")),
    row("S2-031", "188-191", "An unknown cell answers 'Cell not found: X'", NotYet("tools and MCP")),
    row("S2-032", "197", "A new source is written as a list of lines", NotYet("document")),
    row("S2-033", "200-202", "replace changes the type when one is given", NotYet("document")),
    row("S2-034", "205-208", "Clearing leaves a code cell with outputs [] and execution_count null", NotYet("document")),
    row("S2-035", "210-214", "replace answers with the cell's id, or what was given for it, and the index", NotYet("tools and MCP")),
    row("S2-036", "221-223", "insert without a type answers 'cell_type required for insert'", NotYet("tools and MCP")),
    row("S2-037", "225-235", "A new cell has an id, empty metadata, and a code cell's fields if it is one", NotYet("document")),
    row("S2-038", "240-243", "insert after an unknown cell answers 'Reference cell not found: X'", NotYet("tools and MCP")),
    row("S2-039", "244-246", "insert goes right after the reference, or to index 0", NotYet("tools and MCP")),
    row("S2-040", "262-264", "delete without a cell answers 'cell_id required for delete'", NotYet("tools and MCP")),
    row("S2-041", "285-294", "A reference is tried as an id first, then as an integer in range", NotYet("document")),
    row("S2-042", "297-302", "A source is split at newlines, each line but the last keeping its own", NotYet("document")),
    row("S2-043", "304-306", "A new id has 8 hexadecimal digits", NotYet("document")),
    row("S2-044", "320", "The tool is registered with the others", NotYet("tools and MCP")),

    # What people see
    row("S2-045", "332-335", "A replace reports: cell updated, the notebook, the cell's id and index, the type", NotYet("history and command line")),
    row("S2-046", "348-352", "An insert reports: cell inserted, the new cell, the type, what it was inserted after", NotYet("history and command line")),
    row("S2-047", "363-365", "A delete reports: cell deleted, what was removed and the index it had", NotYet("history and command line")),

    # Beyond the editor
    row("S2-048", "377-382", "The extension of a running JupyterLab, which the document put off, is there", NotYet("JupyterLab")),
    row("S2-049", "386", "Notebook paths are validated", NotYet("workspace and engine")),
    row("S2-050", "387", "The structure of a notebook is verified before it is edited", NotYet("document")),
    row("S2-051", "388", "Editing executes nothing of what a notebook holds", NotYet("document")),
    row("S2-052", "389", "A backup can be made before an edit", NotYet("history and command line")),
    row("S2-053", "393-401", "Cell operations, ids, normalisation and whole workflows have tests", NotYet("document")),
    row("S2-054", "405", "Phase 1: replace, insert and delete", NotYet("document")),
    row("S2-055", "406", "Phase 2: several operations as one", NotYet("document")),
    row("S2-056", "407", "Phase 3: outputs are kept or cleared as the caller chooses", NotYet("document")),
    row("S2-057", "408", "Phase 4: notebooks are created", NotYet("document")),
)
# fmt: on
