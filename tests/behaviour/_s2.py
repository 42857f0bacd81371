"""S2, NotebookEdit: one tool that replaces, inserts and deletes cells."""

from __future__ import annotations

from tests.behaviour.promise import Done, row

# fmt: off
ROWS = (
    row("S2-001", "11", "An agent can create, edit and manage notebooks", Done("tests/unit/tools/test_editing.py::test_a_missing_notebook_is_made_if_asked")),
    row("S2-002", "17-18", "A notebook is changed cell by cell", Done("tests/behaviour/test_documents.py::test_an_edit_changes_one_cell_and_no_byte_of_the_others")),
    row("S2-003", "19", "Outputs of untouched cells stay", Done("tests/behaviour/test_documents.py::test_an_edit_keeps_the_outputs_and_metadata_of_every_cell")),
    row("S2-004", "20", "Metadata of cells stays", Done("tests/behaviour/test_documents.py::test_an_edit_keeps_the_outputs_and_metadata_of_every_cell")),

    # The tool's parameters and result
    row("S2-005", "32", "notebook_path is the absolute path of the notebook", Done("tests/unit/tools/test_profile_notebookedit.py::test_a_path_is_that_of_the_caller_or_absolute")),
    row("S2-006", "33", "cell_id is the cell's id, or a position", Done("tests/unit/tools/test_profile_notebookedit.py::test_a_reference_is_an_id_first_and_then_an_index")),
    row("S2-007", "34,50", "cell_type is code, markdown or raw", Done("tests/unit/tools/test_profile_notebookedit.py::test_the_description_and_the_schema_state_parameters_operations_and_notes")),
    row("S2-008", "36,51", "edit_mode is replace, insert or delete", Done("tests/unit/tools/test_profile_notebookedit.py::test_the_description_and_the_schema_state_parameters_operations_and_notes")),
    row("S2-009", "55", "cell_id is optional in the schema", Done("tests/unit/tools/test_table.py::test_what_is_required_is_what_the_document_requires")),
    row("S2-010", "56", "cell_type is required for insert", Done("tests/unit/tools/test_profile_notebookedit.py::test_insert_needs_a_type")),
    row("S2-011", "57", "new_source is required, except where nothing is written", Done("tests/unit/tools/test_profile_notebookedit.py::test_replace_and_insert_need_a_source")),
    row("S2-012", "58", "edit_mode is replace when absent", Done("tests/unit/tools/test_profile_notebookedit.py::test_replace_is_the_mode_unless_another_is_given")),
    row("S2-013", "61-66", "The result is success, cell_id, cell_index and error", Done("tests/unit/tools/test_profile_notebookedit.py::test_replace_is_the_mode_unless_another_is_given", also=("tests/unit/tools/test_profile_notebookedit.py::test_an_unknown_cell_is_not_found",))),

    # The notebook's structure
    row("S2-014", "69-83", "A notebook is nbformat, nbformat_minor, metadata and cells", Done("tests/behaviour/test_documents.py::test_a_notebook_is_created_with_its_four_members")),
    row("S2-015", "77", "Cells have ids from nbformat 4.5 on", Done("tests/behaviour/test_documents.py::test_a_new_cell_has_an_id_from_version_4_5_on")),
    row("S2-016", "79", "A source may be a string or a list of strings", Done("tests/behaviour/test_documents.py::test_a_source_list_and_a_source_string_are_read_as_one_text")),
    row("S2-017", "85-89", "Cell metadata may have id and tags, and any other key is kept", Done("tests/behaviour/test_documents.py::test_an_edit_keeps_the_outputs_and_metadata_of_every_cell")),
    row("S2-018", "91-94", "Outputs are of four types: stream, execute_result, display_data and error", Done("tests/behaviour/test_documents.py::test_outputs_are_of_four_types")),

    # What the tool says of itself
    row("S2-019", "102", "The tool is called NotebookEdit", Done("tests/unit/tools/test_table.py::test_the_profiles_have_the_tools_of_their_documents")),
    row("S2-020", "103-121", "Its description states the parameters, the operations and the notes", Done("tests/unit/tools/test_profile_notebookedit.py::test_the_description_and_the_schema_state_parameters_operations_and_notes")),
    row("S2-021", "114", "insert puts the cell after cell_id, or at the start without one", Done("tests/unit/tools/test_profile_notebookedit.py::test_insert_goes_right_after_the_cell_that_is_named", also=("tests/unit/tools/test_profile_notebookedit.py::test_insert_without_a_cell_goes_to_the_start",))),
    row("S2-022", "118", "A cell's id survives an edit", Done("tests/behaviour/test_documents.py::test_the_id_of_a_cell_survives_every_edit_of_it")),
    row("S2-023", "119", "Its replace clears the outputs of a code cell", Done("tests/unit/tools/test_profile_notebookedit.py::test_replace_clears_the_outputs_of_code")),
    row("S2-024", "120", "A cell is named by its position from 0 or by its id", Done("tests/behaviour/test_documents.py::test_a_cell_is_named_by_its_id_or_by_its_position_from_zero")),

    # The editor
    row("S2-025", "141-143", "A relative path is resolved against the caller's working directory", Done("tests/unit/tools/test_profile_notebookedit.py::test_a_path_is_that_of_the_caller_or_absolute")),
    row("S2-026", "146-147", "A missing file answers 'Notebook not found'", Done("tests/unit/tools/test_profile_notebookedit.py::test_a_missing_notebook_is_not_found")),
    row("S2-027", "155-156", "A file that is no notebook answers 'Invalid notebook format'", Done("tests/unit/tools/test_profile_notebookedit.py::test_a_file_that_is_no_notebook_has_an_invalid_format")),
    row("S2-028", "173", "Another edit_mode answers 'Invalid edit mode'", Done("tests/unit/tools/test_profile_notebookedit.py::test_another_mode_is_invalid")),
    row("S2-029", "176", "A failing edit writes nothing", Done("tests/behaviour/test_documents.py::test_a_failing_edit_writes_nothing")),
    row("S2-030", "179", "A new notebook is written with indent 1", Done("tests/behaviour/test_documents.py::test_an_existing_notebook_keeps_its_own_style_and_a_new_one_has_an_indent_of_one")),
    row("S2-031", "188-191", "An unknown cell answers 'Cell not found: X'", Done("tests/unit/tools/test_profile_notebookedit.py::test_an_unknown_cell_is_not_found")),
    row("S2-032", "197", "A new source is written as a list of lines", Done("tests/behaviour/test_documents.py::test_a_source_is_split_into_lines_that_keep_their_newline")),
    row("S2-033", "200-202", "replace changes the type when one is given", Done("tests/behaviour/test_documents.py::test_replace_changes_the_type_when_one_is_given_and_keeps_it_otherwise")),
    row("S2-034", "205-208", "Clearing leaves a code cell with outputs [] and execution_count null", Done("tests/behaviour/test_documents.py::test_outputs_are_kept_or_cleared_as_the_caller_chooses")),
    row("S2-035", "210-214", "replace answers with the cell's id, or what was given for it, and the index", Done("tests/unit/tools/test_profile_notebookedit.py::test_replace_is_the_mode_unless_another_is_given")),
    row("S2-036", "221-223", "insert without a type answers 'cell_type required for insert'", Done("tests/unit/tools/test_profile_notebookedit.py::test_insert_needs_a_type")),
    row("S2-037", "225-235", "A new cell has an id, empty metadata, and a code cell's fields if it is one", Done("tests/behaviour/test_documents.py::test_a_new_code_cell_has_the_fields_of_code")),
    row("S2-038", "240-243", "insert after an unknown cell answers 'Reference cell not found: X'", Done("tests/unit/tools/test_profile_notebookedit.py::test_an_unknown_cell_is_not_found")),
    row("S2-039", "244-246", "insert goes right after the reference, or to index 0", Done("tests/unit/tools/test_profile_notebookedit.py::test_insert_goes_right_after_the_cell_that_is_named", also=("tests/unit/tools/test_profile_notebookedit.py::test_insert_without_a_cell_goes_to_the_start",))),
    row("S2-040", "262-264", "delete without a cell answers 'cell_id required for delete'", Done("tests/unit/tools/test_profile_notebookedit.py::test_delete_needs_a_cell")),
    row("S2-041", "285-294", "A reference is tried as an id first, then as an integer in range", Done("tests/behaviour/test_documents.py::test_an_id_that_is_a_number_is_tried_before_a_position")),
    row("S2-042", "297-302", "A source is split at newlines, each line but the last keeping its own", Done("tests/behaviour/test_documents.py::test_a_source_is_split_into_lines_that_keep_their_newline")),
    row("S2-043", "304-306", "A new id has 8 hexadecimal digits", Done("tests/behaviour/test_documents.py::test_a_new_id_has_eight_hexadecimal_digits_and_is_its_own")),
    row("S2-044", "320", "The tool is registered with the others", Done("tests/unit/tools/test_table.py::test_the_profiles_have_the_tools_of_their_documents")),

    # What people see
    row("S2-045", "332-335", "A replace reports: cell updated, the notebook, the cell's id and index, the type", Done("tests/unit/cli/test_changes.py::test_a_replace_tells_the_notebook_the_cell_its_index_and_type")),
    row("S2-046", "348-352", "An insert reports: cell inserted, the new cell, the type, what it was inserted after", Done("tests/unit/cli/test_changes.py::test_an_insert_tells_the_new_cell_its_type_and_what_it_comes_after")),
    row("S2-047", "363-365", "A delete reports: cell deleted, what was removed and the index it had", Done("tests/unit/cli/test_changes.py::test_a_delete_tells_what_was_removed_and_where_it_was")),

    # Beyond the editor
    row("S2-048", "377-382", "The extension of a running JupyterLab, which the document put off, is there", Done("tests/browser/test_tab.py::test_an_edit_appears_in_the_tab_in_place_and_is_saved")),
    row("S2-049", "386", "Notebook paths are validated", Done("tests/unit/workspace/hosts/test_paths.py::test_no_way_leads_out_of_the_root")),
    row("S2-050", "387", "The structure of a notebook is verified before it is edited", Done("tests/behaviour/test_documents.py::test_the_structure_is_verified_before_anything_is_written")),
    row("S2-051", "388", "Editing executes nothing of what a notebook holds", Done("tests/behaviour/test_documents.py::test_editing_executes_nothing_of_what_a_notebook_holds")),
    row("S2-052", "389", "A backup can be made before an edit", Done("tests/integration/test_stories.py::test_a_backup_is_a_copy_beside_the_file")),
    row("S2-053", "393-401", "Cell operations, ids, normalisation and whole workflows have tests", Done("tests/behaviour/test_documents.py::test_a_whole_session_of_reading_editing_conflicting_and_undoing")),
    row("S2-054", "405", "Phase 1: replace, insert and delete", Done("tests/behaviour/test_documents.py::test_cells_are_replaced_inserted_and_deleted")),
    row("S2-055", "406", "Phase 2: several operations as one", Done("tests/behaviour/test_documents.py::test_several_operations_are_one_step")),
    row("S2-056", "407", "Phase 3: outputs are kept or cleared as the caller chooses", Done("tests/behaviour/test_documents.py::test_outputs_are_kept_or_cleared_as_the_caller_chooses")),
    row("S2-057", "408", "Phase 4: notebooks are created", Done("tests/behaviour/test_documents.py::test_a_notebook_is_created_with_its_four_members")),
)
# fmt: on
