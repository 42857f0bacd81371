"""S4, the Manipulator Protocol v1: a kernel that edits its own notebook."""

from __future__ import annotations

from tests.behaviour.promise import Done, NotYet, row

# fmt: off
ROWS = (
    # Messages
    row("S4-001", "7", "Kernel code manipulates its notebook over a comm", Done("tests/kernels/test_manipulator.py::test_all_six_methods_answer_while_the_cell_that_asks_runs")),
    row("S4-002", "9", "The comm's target is jupyter.notebook.manipulator.v1", Done("tests/kernels/test_manipulator_conformance.py::test_every_statement_about_the_kernels_side_holds")),
    row("S4-003", "11", "The protocol's version is 1", Done("tests/unit/protocol/test_conformance.py::test_our_frontend_passes_every_row")),
    row("S4-004", "17-25", "A request is method, request_id and params", Done("tests/unit/cellwright_kernel/test_client.py::test_requests_are_method_id_and_params_and_ids_are_all_different")),
    row("S4-005", "27-41", "A response is request_id and status, with result only if ok and error only if not", Done("tests/unit/protocol/test_methods.py::test_the_count_is_the_number_of_all_cells", also=("tests/unit/protocol/test_methods.py::test_bad_ranges_are_refused_in_the_words_of_the_protocol",))),
    row("S4-006", "36-38", "An error has a message and a code", Done("tests/unit/protocol/test_methods.py::test_an_unknown_method_is_named")),

    # Reading
    row("S4-007", "45-66", "get_cell_count answers with the count", Done("tests/unit/protocol/test_methods.py::test_the_count_is_the_number_of_all_cells")),
    row("S4-008", "68-99", "get_notebook_metadata answers with the notebook's metadata", Done("tests/unit/protocol/test_methods.py::test_the_metadata_are_the_notebooks_own")),
    row("S4-009", "103-113", "get_cell_range takes a start that counts and an end that does not", Done("tests/unit/protocol/test_methods.py::test_a_range_has_its_start_and_not_its_end")),
    row("S4-010", "123-141", "A cell is type, source and metadata; only code cells have outputs and a count", Done("tests/unit/protocol/test_methods.py::test_a_range_has_its_start_and_not_its_end")),
    row("S4-011", "126", "A source is a string or a list of strings", Done("tests/unit/protocol/test_methods.py::test_a_splice_deletes_at_its_start_and_inserts_there")),
    row("S4-012", "130", "execution_count may be null", Done("tests/unit/protocol/test_conformance.py::test_our_frontend_passes_every_row")),
    row("S4-013", "144-153", "A start after the end is INVALID_RANGE, 'Invalid cell range: start=10, end=5'", Done("tests/unit/protocol/test_methods.py::test_bad_ranges_are_refused_in_the_words_of_the_protocol")),
    row("S4-014", "156-165", "An end past the cells is OUT_OF_BOUNDS, 'Cell range out of bounds: end=100 exceeds cell count of 42'", Done("tests/unit/protocol/test_methods.py::test_bad_ranges_are_refused_in_the_words_of_the_protocol")),
    row("S4-015", "-", "An empty range, a start at the count, negatives and what is no integer have a stated answer", Done("tests/unit/protocol/test_methods.py::test_an_empty_range_is_no_cells_wherever_it_is", also=("tests/unit/protocol/test_methods.py::test_bad_ranges_are_refused_in_the_words_of_the_protocol",))),

    # Splicing
    row("S4-016", "170-194", "splice_cell_range takes start, delete_count and cells", Done("tests/unit/protocol/test_methods.py::test_a_splice_deletes_at_its_start_and_inserts_there")),
    row("S4-017", "197-201", "A splice deletes at start and then inserts there; either part may be empty", Done("tests/unit/protocol/test_methods.py::test_a_splice_deletes_at_its_start_and_inserts_there")),
    row("S4-018", "204-206", "The three examples hold: delete two, insert one, replace one", Done("tests/unit/protocol/test_methods.py::test_a_splice_deletes_at_its_start_and_inserts_there")),
    row("S4-019", "214-217", "affected_range is start and start plus the number of inserted cells", Done("tests/unit/protocol/test_methods.py::test_a_splice_deletes_at_its_start_and_inserts_there")),
    row("S4-020", "223-231", "A bad splice is INVALID_SPLICE_PARAMS, 'Invalid splice parameters: start=10 is out of bounds'", Done("tests/unit/protocol/test_methods.py::test_a_bad_splice_changes_nothing")),

    # Metadata
    row("S4-021", "234-253", "set_notebook_metadata takes metadata and merge", Done("tests/unit/protocol/test_methods.py::test_metadata_are_merged_or_replaced")),
    row("S4-022", "251", "merge true merges with what is there", Done("tests/unit/protocol/test_methods.py::test_metadata_are_merged_or_replaced")),
    row("S4-023", "251", "merge false replaces all of it", Done("tests/unit/protocol/test_methods.py::test_metadata_are_merged_or_replaced")),
    row("S4-024", "-", "merge absent is true", Done("tests/unit/protocol/test_methods.py::test_metadata_are_merged_or_replaced")),
    row("S4-025", "256-263", "The result is an empty object", Done("tests/unit/protocol/test_methods.py::test_metadata_are_merged_or_replaced")),
    row("S4-026", "265-275", "Bad metadata is INVALID_METADATA, 'Failed to update notebook metadata: …'", Done("tests/unit/protocol/test_methods.py::test_bad_metadata_change_nothing")),

    # Executing
    row("S4-027", "279-291", "execute_cell_range takes start and end", Done("tests/unit/protocol/test_methods.py::test_code_cells_of_a_range_are_run_in_order_and_text_is_skipped")),
    row("S4-028", "293-300", "It answers ok when the cells were executed", Done("tests/kernels/test_manipulator_workspace.py::test_the_report_writes_itself_into_the_file")),
    row("S4-029", "302-324", "It refuses ranges as get_cell_range does", Done("tests/unit/protocol/test_methods.py::test_bad_ranges_are_refused_in_the_words_of_the_protocol")),
    row("S4-030", "326-336", "A failing cell is EXECUTION_FAILED, 'Cell execution failed at index 3: SyntaxError'", Done("tests/unit/protocol/test_methods.py::test_the_first_failure_ends_the_run_and_is_named_by_index", also=("tests/kernels/test_manipulator_workspace.py::test_a_failing_nested_cell_is_a_result_of_its_own",))),

    # Codes
    row("S4-031", "342-350", "There are nine error codes", Done("tests/unit/protocol/test_methods.py::test_the_codes_are_the_nine_of_the_protocol_and_one_of_ours")),
    row("S4-032", "346", "Malformed cells are INVALID_CELL_DATA", Done("tests/unit/protocol/test_methods.py::test_a_bad_splice_changes_nothing")),
    row("S4-033", "348", "An unknown method is UNKNOWN_METHOD", Done("tests/unit/protocol/test_methods.py::test_an_unknown_method_is_named")),
    row("S4-034", "349", "Trouble of our own is INTERNAL_ERROR", Done("tests/unit/protocol/test_methods.py::test_trouble_of_our_own_is_an_internal_error_on_one_line")),
    row("S4-035", "350", "No notebook is NO_ACTIVE_NOTEBOOK", Done("tests/unit/protocol/test_methods.py::test_without_a_notebook_every_method_says_so", also=("tests/kernels/test_manipulator_workspace.py::test_code_of_eval_has_no_notebook",))),

    # The conversation
    row("S4-036", "355", "The kernel opens the comm", Done("tests/kernels/test_manipulator_conformance.py::test_every_statement_about_the_kernels_side_holds")),
    row("S4-037", "356", "The frontend listens for the target and accepts", Done("tests/unit/protocol/test_conformance.py::test_our_frontend_passes_every_row")),
    row("S4-038", "359-360", "Answers come on the same comm", Done("tests/unit/protocol/test_bridge.py::test_another_comm_may_use_the_same_ids")),
    row("S4-039", "361", "Each answer carries the request's id", Done("tests/unit/protocol/test_bridge.py::test_any_plain_id_is_given_back_as_it_came")),
    row("S4-040", "362", "A request times out after 30 s", Done("tests/unit/cellwright_kernel/test_client.py::test_the_usual_timeout_is_thirty_seconds_and_that_of_a_run_its_own")),
    row("S4-041", "365", "What cannot be processed is answered with status error", Done("tests/unit/protocol/test_methods.py::test_an_unknown_method_is_named", also=("tests/property/test_manipulator_messages.py::test_every_fuzzed_message_is_answered_once_and_the_notebook_stays_valid",))),
    row("S4-042", "366", "A timeout raises in the kernel", Done("tests/kernels/test_manipulator.py::test_nobody_answering_raises_after_the_timeout_and_says_so")),
    row("S4-043", "367", "The comm stays open after errors", Done("tests/unit/protocol/test_bridge.py::test_the_comm_stays_open_after_errors")),

    # Formats and notes
    row("S4-044", "371-377", "Cells follow nbformat", Done("tests/unit/protocol/test_methods.py::test_a_splice_deletes_at_its_start_and_inserts_there")),
    row("S4-045", "379-385", "Metadata follows nbformat, custom fields included", Done("tests/unit/protocol/test_methods.py::test_metadata_are_merged_or_replaced")),
    row("S4-046", "389", "Concurrent requests are safe", Done("tests/unit/protocol/test_bridge.py::test_requests_are_carried_out_one_by_one_in_the_order_they_came")),
    row("S4-047", "391", "Cells are validated before anything is applied", Done("tests/unit/protocol/test_methods.py::test_a_bad_splice_changes_nothing")),
    row("S4-048", "393", "Changes can be undone and redone", Done("tests/unit/workspace/runs/test_running.py::test_what_a_kernel_changes_is_saved_by_the_person_who_has_it_open", also=("tests/kernels/test_manipulator_workspace.py::test_what_a_kernel_changes_is_on_disk_when_it_is_told_so_and_can_be_undone",))),
    row("S4-049", "395", "Changes are made in memory, and saving is the user's, by a stated policy", Done("tests/kernels/test_manipulator_workspace.py::test_what_a_kernel_changes_is_on_disk_when_it_is_told_so_and_can_be_undone")),
    row("S4-050", "397", "Changes are told to whoever watches the notebook", Done("tests/kernels/test_manipulator_workspace.py::test_whoever_watches_hears_what_a_kernel_changes")),
    row("S4-051", "399", "Request ids are unique within a comm: a UUID, or a prefix and a counter", Done("tests/unit/cellwright_kernel/test_client.py::test_requests_are_method_id_and_params_and_ids_are_all_different")),

    # What may come later
    row("S4-052", "405", "A later version can manipulate cell outputs", NotYet("manipulator protocol")),
    row("S4-053", "406", "A later version can restart and interrupt the kernel", NotYet("manipulator protocol")),
    row("S4-054", "407", "A later version can save and rename the notebook", NotYet("manipulator protocol")),
    row("S4-055", "408", "A later version can change metadata in bulk", NotYet("manipulator protocol")),
    row("S4-056", "409", "A later version can change a cell's metadata without replacing the cell", NotYet("manipulator protocol")),

    # Edges of ours
    row("S4-057", "-", "The Runner, which has no comms, says so instead of hanging", Done("tests/kernels/test_manipulator.py::test_the_runner_which_has_no_comms_says_so_at_once")),
    row("S4-058", "-", "A mode that forbids an edit or a run forbids it over the comm too", Done("tests/unit/protocol/test_methods.py::test_a_mode_that_forbids_says_so_and_reading_still_works")),
)
# fmt: on
