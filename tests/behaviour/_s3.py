"""S3, a notebook as editable text, and `eval` that runs cells."""

from __future__ import annotations

from tests.behaviour.promise import Done, row

# fmt: off
ROWS = (
    # The text
    row("S3-001", "7", "Notebooks are converted and edited as text with no kernel involved", Done("tests/integration/project/test_imports.py::test_text_is_read_and_written_with_no_kernel_and_no_event_loop")),
    row("S3-002", "15", "read treats an .ipynb as a notebook unless the selector is :raw", Done("tests/unit/cli/test_output.py::test_without_raw_a_file_is_treated_as_a_notebook")),
    row("S3-003", "15", "read treats any other file as a plain file", Done("tests/unit/tools/test_profile_text.py::test_lines_of_another_file")),
    row("S3-004", "17-19", "The markers are # %% [code] cell:N, # %% [markdown] cell:N and # %% [raw] cell:N", Done("tests/unit/text/test_view.py::test_every_cell_begins_with_a_marker_that_tells_its_type_and_index")),
    row("S3-005", "20", "Line selectors count the lines of that text", Done("tests/unit/text/test_selection.py::test_lines_are_counted_on_the_text_and_not_on_the_file")),
    row("S3-006", "20", "A selector may name several ranges", Done("tests/unit/text/test_selection.py::test_several_ranges_are_shown_exactly_and_in_order")),
    row("S3-007", "21", "Edited text is turned back into the notebook", Done("tests/property/test_text.py::test_edited_text_makes_exactly_the_notebook_it_describes")),
    row("S3-008", "22", "A cell that a marker refers to by N keeps its metadata", Done("tests/unit/text/test_combine.py::test_metadata_stays_with_the_cell_that_a_marker_refers_to")),
    row("S3-009", "22", "A new cell has empty metadata", Done("tests/unit/text/test_combine.py::test_any_other_marker_makes_a_new_cell_with_empty_metadata")),
    row("S3-010", "23", "Text for a missing notebook starts from an empty one of nbformat 4.5", Done("tests/unit/text/test_combine.py::test_without_a_notebook_the_text_starts_from_an_empty_one_of_4_5")),
    row("S3-011", "25-31", "The text view has no session, execution, chunks or artifacts", Done("tests/integration/project/test_imports.py::test_text_is_read_and_written_with_no_kernel_and_no_event_loop")),
    row("S3-012", "35", "eval takes cells that each name their language, py among them", Done("tests/integration/workspace/test_eval.py::test_cells_share_a_state_with_each_other_and_with_later_calls", also=("tests/integration/workspace/test_eval.py::test_each_cell_names_its_language",))),
    row("S3-013", "37", "eval has the subprocess, reset and cancel, streaming, displays and truncation", Done("tests/integration/workspace/test_eval.py::test_a_reset_is_for_its_own_cell", also=("tests/integration/workspace/test_eval.py::test_progress_is_told_as_it_goes", "tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are", "tests/integration/workspace/test_eval.py::test_long_output_is_cut_and_all_of_it_is_in_an_artifact", "tests/integration/workspace/test_eval.py::test_a_session_can_be_looked_at_interrupted_restarted_and_ended"))),

    # Sources
    row("S3-014", "43", "A source list is joined to one text", Done("tests/behaviour/test_documents.py::test_a_source_list_and_a_source_string_are_read_as_one_text")),
    row("S3-015", "45-46", "Every line keeps its newline, and a last line without one gets none", Done("tests/behaviour/test_documents.py::test_a_source_is_split_into_lines_that_keep_their_newline")),
    row("S3-016", "47", "An empty source becomes an empty list", Done("tests/behaviour/test_documents.py::test_an_empty_source_becomes_an_empty_list")),

    # From text to cells
    row("S3-017", "53", "The first line must be a marker; even a blank line before it is refused", Done("tests/unit/text/test_parsing.py::test_text_before_the_first_marker_is_refused_with_its_line")),
    row("S3-018", "54", "A marker is # %% and a type in brackets, with cell:N optional", Done("tests/unit/text/test_parsing.py::test_a_marker_has_a_type_and_perhaps_a_number")),
    row("S3-019", "55", "An N not used before clones that cell with the new type and source", Done("tests/unit/text/test_combine.py::test_a_marker_with_a_number_keeps_all_of_that_cell_but_source_and_type")),
    row("S3-020", "56", "Any other marker makes a new cell", Done("tests/unit/text/test_combine.py::test_any_other_marker_makes_a_new_cell_with_empty_metadata")),
    row("S3-021", "57", "A code cell made from text has execution_count and outputs", Done("tests/unit/text/test_combine.py::test_a_cell_that_becomes_code_gets_outputs_and_a_count")),
    row("S3-022", "58", "A markdown or raw cell made from text has neither", Done("tests/unit/text/test_combine.py::test_a_cell_that_becomes_text_loses_outputs_and_count")),

    # Errors
    row("S3-023", "64", "Reading a missing notebook is an error", Done("tests/behaviour/test_documents.py::test_a_missing_notebook_is_an_error")),
    row("S3-024", "65", "Invalid JSON is an error", Done("tests/behaviour/test_documents.py::test_invalid_json_is_an_error")),
    row("S3-025", "66", "Cells that are missing or no array are an error", Done("tests/behaviour/test_documents.py::test_cells_that_are_missing_or_no_array_are_an_error")),
    row("S3-026", "67", "A cell that is no object or has no known type is an error", Done("tests/behaviour/test_documents.py::test_a_cell_that_is_no_object_or_has_no_known_type_is_an_error")),
    row("S3-027", "68", "Text that is no valid representation is an error", Done("tests/unit/text/test_combine.py::test_text_that_is_no_text_view_changes_nothing")),
    row("S3-028", "70", "These come as ordinary errors of the tool that was called", Done("tests/unit/tools/test_profile_text.py::test_what_cannot_be_read")),

    # Sessions
    row("S3-029", "80-81", "A kernel is kept per session id and working directory", Done("tests/unit/kernel/test_pool.py::test_state_is_kept_by_name_and_folder", also=("tests/integration/workspace/test_eval.py::test_sessions_are_told_apart_by_folder",))),
    row("S3-030", "82", "Several owners share a kept kernel", Done("tests/unit/kernel/test_pool.py::test_owners_share_a_session_and_leave_it_one_by_one", also=("tests/unit/workspace/test_sessions.py::test_a_session_with_a_name_is_shared_on_purpose",))),
    row("S3-031", "83", "Executions of one session are serialised", Done("tests/unit/kernel/test_pool.py::test_cells_of_a_session_run_one_at_a_time_in_order")),
    row("S3-032", "84", "A dead kernel is replaced before a run", Done("tests/integration/workspace/test_eval.py::test_a_dead_kernel_is_replaced_before_the_next_cell_and_said_so")),
    row("S3-033", "85-88", "The per-call mode makes a process, runs, and always shuts it down", Done("tests/integration/workspace/test_eval.py::test_a_call_of_its_own_neither_sees_nor_leaves_anything")),
    row("S3-034", "92", "Each cell has a reset of its own; the call has none", Done("tests/unit/tools/test_profile_text.py::test_a_reset_is_of_a_cell_and_not_of_the_call", also=("tests/integration/workspace/test_eval.py::test_a_reset_is_for_its_own_cell",))),
    row("S3-035", "98-99", "A process that died is replaced, and code that died with it is retried once", Done("tests/integration/workspace/test_eval.py::test_a_crash_is_retried_once_and_said_so", also=("tests/integration/workspace/test_eval.py::test_a_dead_kernel_is_replaced_before_the_next_cell_and_said_so",))),
    row("S3-036", "100", "A reset is refused while another of the same session is under way", Done("tests/unit/kernel/test_pool.py::test_a_second_reset_is_refused_while_one_runs")),

    # The kernel's environment
    row("S3-037", "106-107", "The kernel gets PI_SESSION_FILE and PI_ARTIFACTS_DIR, besides our own names", Done("tests/integration/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names")),
    row("S3-038", "108-110", "With PI_TOOL_BRIDGE_URL, TOKEN and SESSION kernel code calls its session's tools", Done("tests/integration/test_run_stories.py::test_code_in_a_kernel_calls_the_tools_of_its_session", also=("tests/integration/tools/test_bridge.py::test_code_in_kernels_calls_the_tools_of_its_session", "tests/integration/batch/test_tools.py::test_a_cell_may_call_a_tool"))),
    row("S3-039", "104", "Variables can be set and removed for each execution", Done("tests/kernels/test_behaviour.py::test_variables_and_folder_are_set_before_a_cell", also=("tests/unit/kernel/test_factory.py::test_a_sessions_variables_have_all_their_names_and_none_removes_them",))),
    row("S3-040", "112", "Code runs in the requested folder, with the variables in os.environ and the folder on sys.path", Done("tests/kernels/test_behaviour.py::test_variables_and_folder_are_set_before_a_cell", also=("tests/integration/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names",))),

    # The runner
    row("S3-041", "116", "Python runs in a subprocess that speaks newline-delimited JSON", Done("tests/integration/kernel/runner/test_protocol.py::test_a_cell_has_started_first_and_exactly_one_done_last", also=("tests/integration/kernel/runner/test_protocol.py::test_nothing_a_cell_or_its_children_write_passes_for_a_frame",))),
    row("S3-042", "118", "stdout and stderr frames become text chunks", Done("tests/kernels/test_behaviour.py::test_a_cell_prints_and_has_a_value", also=("tests/integration/workspace/test_eval.py::test_progress_is_told_as_it_goes",))),
    row("S3-043", "119", "display and result frames become rendered MIME bundles", Done("tests/kernels/test_behaviour.py::test_displays_come_with_their_type_and_can_be_renewed", also=("tests/kernels/test_behaviour.py::test_a_cell_prints_and_has_a_value",))),
    row("S3-044", "120", "An error frame gives the traceback as text and its parts as data", Done("tests/kernels/test_behaviour.py::test_a_failing_cell_says_why_and_the_next_one_runs", also=("tests/integration/workspace/test_eval.py::test_it_stops_at_the_first_failure_unless_told_to_go_on",))),
    row("S3-045", "121", "A done frame gives status, execution count and whether it was cancelled", Done("tests/integration/kernel/runner/test_protocol.py::test_a_cell_has_started_first_and_exactly_one_done_last", also=("tests/kernels/test_behaviour.py::test_an_interrupted_cell_is_cancelled_and_the_state_is_kept",))),
    row("S3-046", "125-127", "The text of a display is its markdown, else plain text, else converted HTML", Done("tests/unit/outputs/test_mime.py::test_text_is_markdown_then_plain_then_html")),
    row("S3-047", "131", "application/json is captured as JSON", Done("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are")),
    row("S3-048", "132", "image/png and image/jpeg are captured as images", Done("tests/unit/outputs/test_mime.py::test_structured_parts_come_beside_the_text", also=("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are",))),
    row("S3-049", "133", "application/x-omp-status is captured as a status event", Done("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are")),
    row("S3-050", "137", "Aborting and timing out send SIGINT to the runner", Done("tests/kernels/test_behaviour.py::test_an_interrupted_cell_is_cancelled_and_the_state_is_kept", also=("tests/kernels/test_behaviour.py::test_a_timeout_interrupts_and_is_told_from_a_cancellation",))),
    row("S3-051", "138", "A runner that does not settle in the grace is killed and made anew by the next call", Done("tests/kernels/test_stuck.py::test_a_stuck_cell_is_answered_in_bounded_time", also=("tests/unit/kernel/test_pool.py::test_a_kernel_that_we_killed_for_its_timeout_does_not_count",))),
    row("S3-052", "139", "The output of a timeout says so", Done("tests/integration/workspace/test_eval.py::test_a_timeout_is_said_in_the_output_and_what_became_of_the_state")),

    # Too much output
    row("S3-053", "145-148", "The sink sanitises, counts, spills to an artifact and keeps a whole-character tail", Done("tests/unit/outputs/test_sink.py::test_whatever_comes_is_harmless", also=("tests/unit/outputs/test_sink.py::test_everything_is_spilled_raw_from_the_first_byte", "tests/unit/outputs/test_sink.py::test_no_character_is_cut", "tests/unit/outputs/test_sink.py::test_lines_are_limited_too"))),
    row("S3-054", "150", "A cut result says so, to the model and on the terminal", Done("tests/unit/outputs/test_sink.py::test_the_notice_tells_what_is_missing_and_where_it_is", also=("tests/integration/cli/test_eval.py::test_a_cut_output_is_said_on_stderr_with_where_all_of_it_is", "tests/unit/tools/test_profile_text.py::test_what_eval_leaves_out_is_read_by_the_call_that_it_names"))),

    # How it looks
    row("S3-055", "158", "Markers are part of the text, not comments that get lost", Done("tests/unit/text/test_combine.py::test_markers_are_part_of_the_text_and_do_not_get_lost")),
    row("S3-056", "164", "Each running cell goes from pending to running to complete or error", Done("tests/unit/cli/test_cards.py::test_cells_go_from_pending_over_running_to_complete_or_error", also=("tests/unit/cli/test_chat_streaming.py::test_a_card_is_drawn_over_until_its_call_is_over",))),
    row("S3-057", "165", "Structured status events are shown", Done("tests/unit/cli/test_cards.py::test_json_is_a_tree_and_a_status_event_a_line")),
    row("S3-058", "166", "JSON outputs are shown as trees", Done("tests/unit/cli/test_cards.py::test_json_is_a_tree_and_a_status_event_a_line", also=("tests/unit/cli/test_cards.py::test_cards_look_as_they_did",))),
    row("S3-059", "167", "Images are shown", Done("tests/unit/cli/test_cards.py::test_pictures_are_drawn_as_show_draws_them")),
    row("S3-060", "168", "A cut output is shown with a warning and its artifact:// pointer", Done("tests/unit/cli/test_cards.py::test_a_cut_is_a_warning_and_what_was_kept_a_pointer")),

    # The two side by side
    row("S3-061", "174-178", "Reading or editing, then eval, then writing back works as a workflow", Done("tests/unit/tools/test_profile_text.py::test_a_notebook_is_read_its_code_is_run_and_what_came_of_it_is_written_back")),
    row("S3-062", "180", "The hole that the document admits is filled: one call edits a notebook and runs its cells", Done("tests/integration/workspace/test_run.py::test_an_edit_and_its_run_are_one_call", also=("tests/integration/cli/test_eval.py::test_an_edit_can_run_what_it_changed",))),
    row("S3-063", "design §5", "A source line that looks like a marker is escaped by one more % and comes back as it was", Done("tests/property/test_text.py::test_sources_full_of_markers_come_back_as_they_were")),
)
# fmt: on
