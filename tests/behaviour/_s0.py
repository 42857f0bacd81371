"""S0, notebook mode: when a chat is about a notebook, what it then knows, and what it may do."""

from __future__ import annotations

from tests.behaviour.promise import Done, NotOurs, NotYet, row

# fmt: off
ROWS = (
    # When notebook mode is on
    row("S0-001", "9-11", "In the chat pane, notebook mode is on only if an .ipynb is attached and open in the active editor", NotYet("assistant")),
    row("S0-002", "13-19", "One helper turns a chat request into its notebook context, or into none", NotYet("assistant")),
    row("S0-003", "22", "The helper asks for the notebook of the active editor", NotYet("assistant")),
    row("S0-004", "23", "The helper takes every .ipynb among the references of the request", NotYet("assistant")),
    row("S0-005", "24-25", "The active notebook must be one of the attached ones; otherwise there is no context", NotYet("assistant")),
    row("S0-006", "24", "The same file matches by another spelling, through a symlink, or percent-encoded", NotYet("assistant")),
    row("S0-007", "27", "A notebook must be attached explicitly even when it is the active editor", NotYet("assistant")),
    row("S0-008", "31", "Inline chat in a cell turns notebook mode on by itself", NotYet("assistant")),
    row("S0-009", "34", "Inline chat checks that its editor belongs to a notebook", NotYet("JupyterLab")),
    row("S0-010", "35", "The location of an inline chat request is Notebook", NotYet("assistant")),
    row("S0-011", "36", "Inline chat goes to the notebook participant, which has a prompt of its own", NotYet("assistant")),
    row("S0-012", "37", "The notebook participant gets the context and knows which cell it is in", NotYet("assistant")),

    # What the context holds
    row("S0-013", "48", "The context names the notebook's uri", NotYet("assistant")),
    row("S0-014", "49", "The context has the kernel's id and language", NotYet("assistant")),
    row("S0-015", "50", "The context has the number of cells", NotYet("assistant")),
    row("S0-016", "51", "The selected cells are always part of the context", NotYet("assistant")),
    row("S0-017", "52", "A cell in the context has its id", NotYet("assistant")),
    row("S0-018", "53", "A cell in the context has its index, counted from 0", NotYet("assistant")),
    row("S0-019", "54", "A cell in the context has its type, code or markdown", NotYet("assistant")),
    row("S0-020", "55", "A cell in the context has its source as content", NotYet("assistant")),
    row("S0-021", "56", "A cell in the context says whether it has output", NotYet("assistant")),
    row("S0-022", "57", "selectionStatus is unselected, selected or active; active means being edited", NotYet("assistant")),
    row("S0-023", "58", "executionStatus of a code cell is running, pending or idle", NotYet("assistant")),
    row("S0-024", "59", "executionOrder of a code cell is the number of its last run", NotYet("assistant")),
    row("S0-025", "60", "lastRunSuccess of a code cell says whether its last run succeeded", NotYet("assistant")),
    row("S0-026", "61", "lastExecutionDuration of a code cell is in milliseconds", NotYet("assistant")),
    row("S0-027", "62", "lastRunEndTime of a code cell is when its last run ended", NotYet("assistant")),
    row("S0-028", "63", "allCells is part of the context only for fewer than 20 cells", NotYet("assistant")),
    row("S0-029", "63", "allCells has the same structure as selectedCells", NotYet("assistant")),
    row("S0-030", "68-69", "The context is built from the live cells, kernel and selection", NotYet("assistant")),
    row("S0-031", "71", "A cell that the editor calls 'editing' is 'active' in the context", NotYet("assistant")),
    row("S0-032", "72", "A markdown cell in the context has no execution fields at all", NotYet("assistant")),
    row("S0-033", "73", "MAX_CELLS_FOR_ALL_CELLS_CONTEXT is 20, and 20 cells are already too many", NotYet("assistant")),

    # What the model is told
    row("S0-034", "80", "Notebook mode adds to what the model is told before the conversation", NotYet("assistant")),
    row("S0-035", "82", "The model is told the uri, the kernel, the cell count and the selected cells", NotYet("assistant")),
    row("S0-036", "83", "The model is told the ids, contents and status of the cells in the context", NotYet("assistant")),
    row("S0-037", "85", "The prompt says to focus on the selected cells", NotYet("assistant")),
    row("S0-038", "86", "The prompt says to refer to cells by id", NotYet("assistant")),
    row("S0-039", "87", "The prompt says to mind the status of cells", NotYet("assistant")),
    row("S0-040", "88", "The prompt says to consider execution order and dependencies", NotYet("assistant")),
    row("S0-041", "89", "The prompt says to keep the notebook's structure with markdown cells", NotYet("assistant")),
    row("S0-042", "90", "The prompt says to manipulate the notebook with its tools", NotYet("assistant")),

    # Which tools there are
    row("S0-043", "93-98", "The enabled tools follow from whether the request has a notebook context", NotYet("assistant")),
    row("S0-044", "100", "A tool tagged requires-notebook is there only in notebook mode", Done("tests/unit/tools/test_modes.py::test_the_scenarios_of_the_document_in_every_mode")),
    row("S0-045", "106-109", "RunNotebookCells, AddNotebookCell and UpdateNotebookCell exist in Agent mode only", Done("tests/unit/tools/test_modes.py::test_the_scenarios_of_the_document_in_every_mode")),
    row("S0-046", "111-113", "GetNotebookCells and GetCellOutputs exist in every mode", Done("tests/unit/tools/test_modes.py::test_the_scenarios_of_the_document_in_every_mode")),
    row("S0-047", "122", "The modifying tools also need the chat pane", NotYet("assistant")),
    row("S0-048", "130", "Naming a tool in a prompt signals the wish to use it", NotYet("assistant")),
    row("S0-049", "134-137", "A tool is named in a prompt by # and its reference name", NotYet("assistant")),
    row("S0-050", "139-141", "The attachment button lists the tools", NotYet("JupyterLab")),
    row("S0-051", "145", "All five notebook tools can be referenced in a prompt", Done("tests/unit/tools/test_table.py::test_every_tool_can_be_referenced_and_says_whether_it_only_reads")),
    row("S0-052", "147-151", "The five reference names are runNotebookCells, addNotebookCell, updateNotebookCell, getCellOutputs and getNotebookCells", Done("tests/unit/tools/test_modes.py::test_the_others_are_answered_with_the_switch_to_agent")),
    row("S0-053", "155", "A reference forces neither the availability nor the use of a tool", NotYet("assistant")),
    row("S0-054", "156", "A referenced tool is still filtered by mode", NotYet("assistant")),
    row("S0-055", "157", "The model gets the reference as context and decides by itself", NotYet("assistant")),
    row("S0-056", "158", "A referenced notebook tool still needs notebook mode", NotYet("assistant")),

    # How the assistant behaves
    row("S0-057", "164-165", "With notebook mode off it is a general coding assistant", NotYet("assistant")),
    row("S0-058", "166", "With notebook mode off it has the ordinary file operations", NotYet("assistant")),
    row("S0-059", "167", "With notebook mode off no notebook tool is there", NotYet("assistant")),
    row("S0-060", "170", "In Ask and Edit mode a notebook is read-only", Done("tests/unit/tools/test_modes.py::test_a_call_is_allowed_or_answered_with_the_mode_that_allows_it")),
    row("S0-061", "172", "GetNotebookCells returns the status fields of the cells", Done("tests/unit/tools/test_profile_positron.py::test_cells_have_the_fields_of_the_document")),
    row("S0-062", "173", "GetCellOutputs returns what the cells' runs put out", Done("tests/unit/tools/test_profile_positron.py::test_the_outputs_of_a_cell")),
    row("S0-063", "174", "In Ask and Edit it can view, analyse, explain and look at outputs", NotYet("assistant")),
    row("S0-064", "175", "It refers to cells by id in its answers", NotYet("assistant")),
    row("S0-065", "176-177", "The model sees the selected cells, and all of them in a small notebook", NotYet("assistant")),
    row("S0-066", "178", "Asked to modify in Ask or Edit, it suggests Agent mode", NotYet("assistant")),
    row("S0-067", "181-188", "In Agent mode all five tools and all operations are there", NotYet("assistant")),
    row("S0-068", "190", "In Agent mode it proposes operations on cells", NotYet("assistant")),

    # Prompt files
    row("S0-069", "196-198", "Prompts are files in prompts/chat, one per mode: agent.md, ask.md, edit.md", NotYet("assistant")),
    row("S0-070", "200-203", "notebook-mode-agent.md is for agent, order 80, and describes itself", NotYet("assistant")),
    row("S0-071", "205", "The Agent prompt lists all five tools", NotYet("assistant")),
    row("S0-072", "206", "The Agent prompt has the workflows analyse, modify, add, execute and debug", NotYet("assistant")),
    row("S0-073", "207", "The Agent prompt restricts no modification", NotYet("assistant")),
    row("S0-074", "208", "The Agent prompt wants tools used instead of direct file access", NotYet("assistant")),
    row("S0-075", "210-213", "notebook-mode-readonly.md is for ask and edit, order 80", NotYet("assistant")),
    row("S0-076", "215", "The read-only prompt lists the two reading tools and no other", NotYet("assistant")),
    row("S0-077", "216", "The read-only prompt has workflows for analysis and explanation", NotYet("assistant")),
    row("S0-078", "217", "The read-only prompt is clear about the limits of the mode", NotYet("assistant")),
    row("S0-079", "218", "The read-only prompt says to suggest Agent mode for modifications", NotYet("assistant")),
    row("S0-080", "219", "The read-only prompt forbids alternatives, attempts to modify among them", NotYet("assistant")),
    row("S0-081", "224", "Prompt files hold no conditionals", NotYet("assistant")),
    row("S0-082", "229", "The renderer includes a prompt file by the mode in its YAML header", NotYet("assistant")),

    # Tools and their answers
    row("S0-083", "233-241", "Without an active notebook every notebook tool answers 'No active notebook found'", Done("tests/unit/tools/test_profile_positron.py::test_without_an_active_notebook_every_tool_says_so")),
    row("S0-084", "248-254", "GetNotebookCells gives selection, execution status, order, success, duration and has-output", Done("tests/unit/tools/test_profile_positron.py::test_cells_come_as_blocks_with_id_status_and_source")),
    row("S0-085", "256-260", "The status tells what runs, what is queued, what ran before and in which order", Done("tests/unit/workspace/test_statuses.py::test_what_runs_or_waits_now_is_said_beside_its_last_run", also=("tests/unit/workspace/test_statuses.py::test_statuses_survive_the_process",))),
    row("S0-086", "262-266", "The notebook functions form one public namespace", NotYet("assistant")),
    row("S0-087", "274-279", "The six points listed as implemented hold: attached, active, both, in the extension, references, names", NotYet("assistant")),
    row("S0-088", "283-286", "Asking for a context by URI, a Notebook mode, or templated prompt injection", NotOurs("the document lists them as alternatives that it does not implement")),

    # The scenario table
    row("S0-089", "304", "Scenario 1: attached and active in Ask is read-only with the two reading tools", NotYet("assistant")),
    row("S0-090", "305", "Scenario 2: attached and active in Edit is read-only with the two reading tools", NotYet("assistant")),
    row("S0-091", "306", "Scenario 3: attached and active in Agent has all five tools", NotYet("assistant")),
    row("S0-092", "307", "Scenario 4: attached while another file is active is off, in any mode", NotYet("assistant")),
    row("S0-093", "308", "Scenario 5: active but not attached is off, in any mode", NotYet("assistant")),
    row("S0-094", "309-310", "Scenarios 6 and 7: several attached and one of them active is on, as the mode allows", NotYet("assistant")),
    row("S0-095", "311", "Scenario 8: several attached and none active is off, in any mode", NotYet("assistant")),

    # The test plans
    row("S0-096", "316", "A notebook is attached by @filename.ipynb", NotYet("assistant")),
    row("S0-097", "318", "A selector switches between Ask, Edit and Agent", NotYet("assistant")),
    row("S0-098", "320-322", "The tool list shows exactly the allowed tools", NotYet("assistant")),
    row("S0-099", "324", "'What does cell 1 do?' is answered with GetNotebookCells", NotYet("assistant")),
    row("S0-100", "325", "'Run this cell' in Ask is answered with the suggestion of Agent mode", NotYet("assistant")),
    row("S0-101", "326,338", "#getNotebookCells and #getCellOutputs work in Ask and Edit", NotYet("assistant")),
    row("S0-102", "336", "'Show me the output of cell 2' is answered with GetCellOutputs", NotYet("assistant")),
    row("S0-103", "337", "'Update cell 3 …' in Edit is answered with the suggestion of Agent mode", NotYet("assistant")),
    row("S0-104", "347-349", "In Agent mode requests to update, run and add use the tool for each", NotYet("assistant")),
    row("S0-105", "351-352", "'#runNotebookCells execute cell 1' and '#addNotebookCell add a new markdown cell at the end' work in Agent", NotYet("assistant")),
    row("S0-106", "358-360", "Without an attached notebook: no notebook tools, no context, a general assistant", NotYet("assistant")),
    row("S0-107", "363-368", "The trace log says which prompt file each mode loaded", NotYet("assistant")),
    row("S0-108", "376", "#runNotebookCells in Ask or Edit is answered with the suggestion of Agent mode", NotYet("assistant")),
    row("S0-109", "381-383", "The attachment list shows only the available tools, and an attached one enters the prompt", NotYet("JupyterLab")),
    row("S0-110", "385", "References of a prompt appear in the request's toolReferences", NotYet("assistant")),
    row("S0-111", "385-387", "The model gets the references, decides, and stays bound by the mode", NotYet("assistant")),
)
# fmt: on
