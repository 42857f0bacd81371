"""S1, the `notebook` tool that edits and the `python` tool that runs."""

from __future__ import annotations

from tests.behaviour.promise import Done, row

# fmt: off
ROWS = (
    # The notebook tool
    row("S1-001", "5", "The notebook tool edits files and never starts or talks to a kernel", Done("tests/unit/tools/test_profile_notebook.py::test_no_action_starts_a_kernel")),
    row("S1-002", "19", "Its actions are edit, insert and delete", Done("tests/unit/tools/test_profile_notebook.py::test_the_actions_are_edit_insert_and_delete_and_no_others")),
    row("S1-003", "20", "Its path is relative to the session's working directory", Done("tests/unit/tools/test_profile_notebook.py::test_a_path_is_relative_to_the_folder_of_the_session")),
    row("S1-004", "21", "A notebook must have a cells array", Done("tests/behaviour/test_documents.py::test_cells_that_are_missing_or_no_array_are_an_error")),
    row("S1-005", "21", "The cell index must be within bounds", Done("tests/unit/tools/test_profile_notebook.py::test_an_index_out_of_range_is_refused_with_the_range_of_the_action")),
    row("S1-006", "22", "A notebook is written as whole JSON with indent 1; one that exists keeps its own style", Done("tests/behaviour/test_documents.py::test_an_existing_notebook_keeps_its_own_style_and_a_new_one_has_an_indent_of_one")),
    row("S1-007", "23", "The tool answers with a summary in words", Done("tests/unit/tools/test_profile_notebook.py::test_the_details_have_the_keys_of_the_document_and_what_happened")),
    row("S1-008", "23", "The tool's details are action, cellIndex, cellType, totalCells and cellSource", Done("tests/unit/tools/test_profile_notebook.py::test_the_details_have_the_keys_of_the_document_and_what_happened")),
    row("S1-009", "25-31", "The tool has no gateway, session, execution, chunks or rich capture", Done("tests/unit/tools/test_profile_notebook.py::test_no_action_starts_a_kernel")),
    row("S1-010", "35", "The python tool runs cells in sequence with lasting state and rich displays", Done("tests/integration/workspace/test_eval.py::test_cells_share_a_state_with_each_other_and_with_later_calls", also=("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are",))),
    row("S1-011", "43-46", "Content is split into lines that keep their newline; the last line gets none", Done("tests/behaviour/test_documents.py::test_a_source_is_split_into_lines_that_keep_their_newline")),
    row("S1-012", "53-54", "edit replaces the source and keeps the type", Done("tests/unit/tools/test_profile_notebook.py::test_edit_replaces_the_source_and_keeps_the_type")),
    row("S1-013", "56", "insert takes an index from 0 to the number of cells", Done("tests/unit/tools/test_profile_notebook.py::test_insert_takes_an_index_from_0_to_the_number_of_cells")),
    row("S1-014", "57", "insert makes a code cell unless told otherwise", Done("tests/unit/tools/test_profile_notebook.py::test_insert_makes_code_with_its_fields_unless_told_otherwise")),
    row("S1-015", "58", "A new code cell has execution_count null and outputs []", Done("tests/behaviour/test_documents.py::test_a_new_code_cell_has_the_fields_of_code")),
    row("S1-016", "59", "A new markdown cell has metadata and source only, and an id where the format has ids", Done("tests/behaviour/test_documents.py::test_a_new_text_cell_has_metadata_and_source_only_and_an_id")),
    row("S1-017", "61-62", "delete removes the cell and gives its source back in the details", Done("tests/unit/tools/test_profile_notebook.py::test_delete_removes_the_cell_and_gives_its_source_back")),
    row("S1-018", "68", "A missing notebook is an error", Done("tests/behaviour/test_documents.py::test_a_missing_notebook_is_an_error")),
    row("S1-019", "69", "Invalid JSON is an error", Done("tests/behaviour/test_documents.py::test_invalid_json_is_an_error")),
    row("S1-020", "70", "Cells that are missing or no array are an error", Done("tests/behaviour/test_documents.py::test_cells_that_are_missing_or_no_array_are_an_error")),
    row("S1-021", "71", "An index out of range is an error, with one more place allowed for insert", Done("tests/unit/tools/test_profile_notebook.py::test_an_index_out_of_range_is_refused_with_the_range_of_the_action")),
    row("S1-022", "72", "edit and insert without content are an error", Done("tests/unit/tools/test_profile_notebook.py::test_content_is_required_for_edit_and_insert")),
    row("S1-023", "74", "Errors come as text beginning with Error: and naming the notebook", Done("tests/unit/tools/test_profile_notebook.py::test_a_missing_notebook_is_an_error_that_names_it_and_makes_none")),

    # Sessions
    row("S1-024", "84", "The session mode is the default", Done("tests/integration/workspace/test_eval.py::test_cells_share_a_state_with_each_other_and_with_later_calls")),
    row("S1-025", "85", "Kernels of the session mode are kept for the next call", Done("tests/unit/kernel/test_pool.py::test_state_is_kept_by_name_and_folder")),
    row("S1-026", "86", "At most 4 sessions are kept", Done("tests/unit/kernel/test_pool.py::test_the_least_recently_used_one_makes_room")),
    row("S1-027", "86", "The oldest session is evicted when there are too many", Done("tests/unit/kernel/test_pool.py::test_the_least_recently_used_one_makes_room", also=("tests/unit/kernel/test_pool.py::test_a_busy_one_is_never_evicted",))),
    row("S1-028", "87", "Idle and dead sessions are looked for every 30 s", Done("tests/unit/kernel/test_pool.py::test_idle_sessions_are_swept_and_used_ones_stay", also=("tests/unit/config/test_settings.py::test_the_defaults_are_the_numbers_of_the_design",))),
    row("S1-029", "87", "An idle or dead session goes after 5 minutes", Done("tests/unit/kernel/test_pool.py::test_idle_sessions_are_swept_and_used_ones_stay", also=("tests/unit/config/test_settings.py::test_the_defaults_are_the_numbers_of_the_design",))),
    row("S1-030", "88", "A queue per session serialises its executions", Done("tests/unit/kernel/test_pool.py::test_cells_of_a_session_run_one_at_a_time_in_order")),
    row("S1-031", "89-92", "The per-call mode makes a kernel, runs, and always shuts it down", Done("tests/integration/workspace/test_eval.py::test_a_call_of_its_own_neither_sees_nor_leaves_anything", also=("tests/unit/kernel/test_pool.py::test_a_call_of_its_own_leaves_nothing_behind",))),
    row("S1-032", "96", "reset of a call with several cells applies to the first one only", Done("tests/unit/tools/test_profile_notebook.py::test_a_reset_comes_before_the_first_cell_and_no_other")),
    row("S1-033", "102", "A heartbeat every 5 s finds dead kernels", Done("tests/unit/kernel/test_pool.py::test_a_heartbeat_finds_the_kernel_that_no_longer_answers", also=("tests/unit/config/test_settings.py::test_the_defaults_are_the_numbers_of_the_design",))),
    row("S1-034", "102", "A failing execution finds a dead kernel too", Done("tests/unit/kernel/test_pool.py::test_a_cell_that_kills_its_kernel_is_retried_once_and_said_so")),
    row("S1-035", "103", "A kernel that is dead before a run is restarted first", Done("tests/unit/kernel/test_pool.py::test_a_dead_kernel_is_replaced_before_the_next_cell")),
    row("S1-036", "104", "A crash while executing restarts the kernel and runs the code once more", Done("tests/integration/workspace/test_eval.py::test_a_crash_is_retried_once_and_said_so")),
    row("S1-037", "105", "A second restart in one session fails with 'Python kernel restarted too many times in this session'", Done("tests/unit/kernel/test_pool.py::test_a_cell_that_kills_its_kernel_is_retried_once_and_said_so", also=("tests/unit/kernel/test_pool.py::test_a_success_between_makes_the_count_begin_anew",))),
    row("S1-038", "109", "Making a kernel at a gateway is retried once on a 5xx", Done("tests/integration/kernel/remote/test_server.py::test_a_server_that_fails_once_is_asked_once_more", also=("tests/integration/kernel/remote/test_server.py::test_a_server_that_fails_twice_is_not_asked_a_third_time",))),
    row("S1-039", "113", "EMFILE, ENFILE and 'Too many open files' are recognised", Done("tests/kernels/test_crowding.py::test_idle_sessions_make_room_when_files_run_out", also=("tests/unit/kernel/test_pool.py::test_when_files_run_out_idle_sessions_and_the_spare_make_room_once",))),
    row("S1-040", "114", "Out of file descriptors, the tracked sessions are cleared", Done("tests/kernels/test_crowding.py::test_idle_sessions_make_room_when_files_run_out")),
    row("S1-041", "115", "Out of file descriptors, the shared gateway is shut down", Done("tests/unit/kernel/test_pool.py::test_every_way_to_run_out_of_files_makes_room_and_another_failure_does_not", also=("tests/unit/kernel/test_pool.py::test_when_files_run_out_idle_sessions_and_the_spare_make_room_once",))),
    row("S1-042", "116", "Out of file descriptors, making the session is retried once", Done("tests/unit/kernel/test_pool.py::test_when_files_run_out_idle_sessions_and_the_spare_make_room_once")),

    # The kernel's environment
    row("S1-043", "120-123", "The kernel gets PI_SESSION_FILE and ARTIFACTS, besides our own names", Done("tests/integration/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names")),
    row("S1-044", "122", "The session file exists at the path that the variable gives", Done("tests/integration/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names")),
    row("S1-045", "127", "The kernel starts in the requested working directory", Done("tests/integration/workspace/test_eval.py::test_sessions_are_told_apart_by_folder", also=("tests/kernels/test_behaviour.py::test_variables_and_folder_are_set_before_a_cell",))),
    row("S1-046", "128", "The given variables are in the kernel's os.environ", Done("tests/kernels/test_behaviour.py::test_variables_and_folder_are_set_before_a_cell")),
    row("S1-047", "129", "The working directory is put first on sys.path unless it is there", Done("tests/integration/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names")),
    row("S1-048", "133", "Helpers in the kernel find the session and the artifacts by those variables", Done("tests/integration/tools/test_bridge.py::test_code_in_a_kernel_has_helpers_for_its_session", also=("tests/integration/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names",))),

    # What comes out of an execution
    row("S1-049", "139", "Stream messages reach the callback as text chunks", Done("tests/integration/workspace/test_eval.py::test_progress_is_told_as_it_goes", also=("tests/kernels/test_behaviour.py::test_a_cell_prints_and_has_a_value",))),
    row("S1-050", "141", "The text of a display is its markdown, else plain text, else converted HTML", Done("tests/unit/outputs/test_mime.py::test_text_is_markdown_then_plain_then_html", also=("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are",))),
    row("S1-051", "143", "application/json is captured as an output of type json", Done("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are")),
    row("S1-052", "144", "image/png is captured as an output of type image", Done("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are")),
    row("S1-053", "145", "application/x-omp-status is captured as a status and gives no text", Done("tests/unit/outputs/test_mime.py::test_a_status_is_no_text", also=("tests/integration/workspace/test_eval.py::test_displays_are_told_apart_by_what_they_are",))),
    row("S1-054", "146", "An error gives its traceback to the stream and its parts as data", Done("tests/integration/workspace/test_eval.py::test_it_stops_at_the_first_failure_unless_told_to_go_on", also=("tests/kernels/test_behaviour.py::test_a_failing_cell_says_why_and_the_next_one_runs",))),
    row("S1-055", "147", "input() gets a warning in the text, an empty reply and a flag on the result", Done("tests/integration/workspace/test_eval.py::test_input_is_answered_from_a_list_and_refused_after_it", also=("tests/kernels/test_behaviour.py::test_input_is_answered_or_refused_and_never_hangs",))),
    row("S1-056", "148", "An execution is complete after execute_reply and idle, both", Done("tests/unit/kernel/remote/test_cell.py::test_a_cell_is_over_with_its_reply_and_its_idle", also=("tests/integration/kernel/local/test_kernel.py::test_a_lost_idle_ends_the_cell_and_is_told",))),
    row("S1-057", "152", "Aborting interrupts, over REST and over the control channel", Done("tests/integration/kernel/remote/test_failures.py::test_without_rest_an_interrupt_goes_by_message", also=("tests/integration/kernel/remote/test_kernel.py::test_an_interrupt_cancels_the_cell_and_keeps_the_kernel",))),
    row("S1-058", "153", "An aborted result says cancelled", Done("tests/kernels/test_behaviour.py::test_an_interrupted_cell_is_cancelled_and_the_state_is_kept", also=("tests/integration/workspace/test_eval.py::test_a_session_can_be_looked_at_interrupted_restarted_and_ended",))),
    row("S1-059", "154", "A timeout adds 'Command timed out after <n> seconds' to the output", Done("tests/integration/workspace/test_eval.py::test_a_timeout_is_said_in_the_output_and_what_became_of_the_state")),

    # Too much output
    row("S1-060", "160", "Every chunk is sanitised", Done("tests/unit/outputs/test_sink.py::test_whatever_comes_is_harmless", also=("tests/integration/workspace/test_eval.py::test_what_a_terminal_would_obey_never_gets_into_the_text",))),
    row("S1-061", "161", "Lines and bytes are counted, in total and as shown", Done("tests/unit/outputs/test_sink.py::test_the_end_is_kept_from_the_start_of_a_line", also=("tests/unit/outputs/test_sink.py::test_lines_are_limited_too",))),
    row("S1-062", "162", "Output can spill to an artifact", Done("tests/unit/outputs/test_sink.py::test_everything_is_spilled_raw_from_the_first_byte")),
    row("S1-063", "163", "The threshold for truncation has a default and can be changed", Done("tests/unit/workspace/test_sessions.py::test_how_much_output_is_kept_is_a_setting", also=("tests/unit/outputs/test_sink.py::test_the_limits_are_those_of_the_settings",))),
    row("S1-064", "165", "The tail is kept, and no character is cut in two", Done("tests/unit/outputs/test_sink.py::test_no_character_is_cut", also=("tests/unit/outputs/test_sink.py::test_of_one_long_line_the_end_is_kept",))),
    row("S1-065", "166", "The artifact holds the whole stream", Done("tests/unit/outputs/test_sink.py::test_everything_is_spilled_raw_from_the_first_byte", also=("tests/integration/workspace/test_eval.py::test_long_output_is_cut_and_all_of_it_is_in_an_artifact",))),
    row("S1-066", "168-172", "The sink's result has the visible text, whether and how much was cut, and the artifact's id", Done("tests/unit/outputs/test_sink.py::test_the_notice_tells_what_is_missing_and_where_it_is", also=("tests/integration/workspace/test_eval.py::test_long_output_is_cut_and_all_of_it_is_in_an_artifact",))),
    row("S1-067", "174", "A cut result says so, to the model and on the terminal", Done("tests/unit/outputs/test_sink.py::test_the_notice_tells_what_is_missing_and_where_it_is", also=("tests/integration/cli/test_eval.py::test_a_cut_output_is_said_on_stderr_with_where_all_of_it_is",))),
    row("S1-068", "176", "The notebook tool has no output pipeline", Done("tests/unit/tools/test_profile_notebook.py::test_no_action_starts_a_kernel")),

    # How it looks
    row("S1-069", "182", "The view of a call shows action, path, and cell or type", Done("tests/unit/cli/test_cards.py::test_the_call_view_has_action_cell_type_path_and_status")),
    row("S1-070", "184", "The view of a success is made from the details", Done("tests/unit/cli/test_cards.py::test_a_success_is_told_from_the_details_of_the_answer")),
    row("S1-071", "185", "The cell's source is shown as a code cell", Done("tests/unit/cli/test_cards.py::test_an_expanded_card_has_all_of_it", also=("tests/unit/cli/test_cards.py::test_cards_look_as_they_did",))),
    row("S1-072", "186", "Markdown cells are highlighted as markdown, the others as what they are", Done("tests/unit/cli/test_cards.py::test_markdown_is_coloured_as_markdown_and_code_as_the_notebooks_language")),
    row("S1-073", "187", "The collapsed preview shows twice COLLAPSED_LINES", Done("tests/unit/cli/test_cards.py::test_a_preview_has_twice_the_lines_of_a_collapsed_output_and_says_how_to_see_the_rest")),
    row("S1-074", "188", "A preview can be expanded", Done("tests/unit/cli/test_cards.py::test_an_expanded_card_has_all_of_it", also=("tests/unit/cli/test_chat_commands.py::test_a_card_is_expanded_by_its_number",))),
    row("S1-075", "189", "Rendered views are cached by width and expansion", Done("tests/unit/cli/test_cards.py::test_a_card_is_laid_out_once_for_each_width_and_expansion")),
    row("S1-076", "193", "A result whose first text begins with Error: is shown as an error block", Done("tests/unit/cli/test_cards.py::test_an_answer_that_begins_with_error_is_an_error_block")),
    row("S1-077", "199", "Each running cell goes from pending to running to complete or error", Done("tests/unit/cli/test_cards.py::test_cells_go_from_pending_over_running_to_complete_or_error", also=("tests/unit/cli/test_chat_streaming.py::test_a_card_is_drawn_over_until_its_call_is_over",))),
    row("S1-078", "200", "Structured status events have a section of their own", Done("tests/unit/cli/test_cards.py::test_json_is_a_tree_and_a_status_event_a_line", also=("tests/unit/cli/test_cards.py::test_cards_look_as_they_did",))),
    row("S1-079", "201", "JSON outputs are shown as trees", Done("tests/unit/cli/test_cards.py::test_json_is_a_tree_and_a_status_event_a_line", also=("tests/unit/cli/test_cards.py::test_cards_look_as_they_did",))),
    row("S1-080", "202", "A cut output is shown with a warning and its artifact:// pointer", Done("tests/unit/cli/test_cards.py::test_a_cut_is_a_warning_and_what_was_kept_a_pointer")),

    # The two side by side
    row("S1-081", "210", "The python tool keeps state by mode, streams, shows rich output, interrupts and truncates", Done("tests/unit/tools/test_profile_notebook.py::test_python_keeps_state_shows_pictures_cuts_output_and_can_be_stopped")),
    row("S1-082", "211", "The notebook tool's edits are deterministic", Done("tests/unit/tools/test_profile_notebook.py::test_the_same_edits_of_the_same_notebook_give_the_same_bytes")),
    row("S1-083", "213-216", "Editing with notebook and executing with python works as a workflow", Done("tests/unit/tools/test_profile_notebook.py::test_a_notebook_is_edited_and_its_code_is_run")),
    row("S1-084", "218", "The hole that the document admits is filled: one call edits a notebook and runs its cells", Done("tests/integration/workspace/test_run.py::test_an_edit_and_its_run_are_one_call", also=("tests/integration/cli/test_eval.py::test_an_edit_can_run_what_it_changed",))),
)
# fmt: on
