"""The design's promises about everything but the document."""

from __future__ import annotations

from tests.behaviour.promise import Done, NotYet, row

# fmt: off
ROWS = (
    # The house
    row("D-100", "§1", "Every error is in one drawn tree, with a stable and unique code, a hint, and whether to retry", Done("tests/unit/test_errors.py::test_the_tree_is_drawn_exactly_as_it_is", also=("tests/unit/test_errors.py::test_every_code_is_used_once", "tests/unit/test_errors.py::test_every_error_says_what_it_means_and_has_a_code_of_its_own"))),
    row("D-101", "§1", "Imports go down only, and a new room must be placed before it is used", Done("tests/unit/test_layers.py::test_imports_go_down_only_and_every_room_has_its_place")),
    row("D-102", "§1", "Every setting knows its origin: flag, variable, project file, user file or default, in this order", Done("tests/unit/config/test_settings.py::test_the_stronger_origin_wins_and_is_remembered")),
    row("D-103", "§1", "Unknown settings are refused with the near one, in files, variables and flags", Done("tests/unit/config/test_settings.py::test_an_unknown_key_in_a_file_is_refused_with_a_near_one", also=("tests/unit/config/test_settings.py::test_an_unknown_variable_is_refused_with_a_near_one", "tests/unit/config/test_settings.py::test_an_unknown_flag_is_refused_with_a_near_one"))),
    row("D-104", "§1", "Wrong or impossible values and broken files are refused with their place", Done("tests/unit/config/test_settings.py::test_a_wrong_type_or_an_impossible_number_in_a_file_is_refused", also=("tests/unit/config/test_settings.py::test_a_wrong_variable_is_refused_by_its_name", "tests/unit/config/test_settings.py::test_a_file_that_is_no_toml_is_refused_with_the_place"))),
    row("D-105", "§1", "A project's file can set only what is harmless", Done("tests/unit/config/test_settings.py::test_what_a_project_may_not_set_only_the_user_can")),
    row("D-106", "§6", "Every limit and timeout is a setting with the design's default", Done("tests/unit/config/test_settings.py::test_the_defaults_are_the_numbers_of_the_design")),
    row("D-107", "§7", "The runtime directory is the session's, else one per user in the temp folder, never in the home folder", Done("tests/unit/config/test_directories.py::test_the_session_folder_is_the_first_choice", also=("tests/unit/config/test_directories.py::test_without_a_session_folder_it_is_named_after_the_user_in_the_temp_folder", "tests/unit/config/test_directories.py::test_a_session_folder_in_the_home_folder_is_passed_over", "tests/unit/config/test_directories.py::test_a_temp_folder_in_the_home_folder_is_passed_over"))),
    row("D-108", "§7", "A runtime directory that is a link, somebody else's or not 0700 is refused", Done("tests/unit/config/test_directories.py::test_a_symbolic_link_is_refused_even_to_a_good_folder", also=("tests/unit/config/test_directories.py::test_any_other_mode_is_refused", "tests/unit/config/test_directories.py::test_a_folder_of_another_user_is_refused"))),
    row("D-109", "§10", "./dev demo sets itself up and shows the main job", Done("tests/integration/test_fresh_copy.py::test_the_demo_sets_itself_up", only_all=True)),
    row("D-110", "§10", "./dev test sets itself up, runs and ends with a table: what ran, what only --all runs, what was skipped and why", Done("tests/integration/test_fresh_copy.py::test_the_tests_set_themselves_up_and_end_with_a_table", only_all=True, also=("tests/unit/test_report.py::test_table_says_what_ran_what_did_not_and_why",))),
    row("D-111", "§10", "./dev check holds lint, types and the direction of imports", Done("tests/unit/test_house.py::test_ci_runs_the_checks_of_style_types_and_layers_and_the_tests")),
    row("D-112", "§10", "A missing tool is a named skip on a user's machine and a failure where CI is set", Done("tests/unit/test_conftest.py::test_a_missing_tool_is_a_failure_in_ci", also=("tests/unit/test_conftest.py::test_a_missing_tool_is_a_named_skip",))),
    row("D-113", "§1", "Requirements are pinned by hash and name no index", Done("tests/unit/test_house.py::test_requirements_are_pins_hashes_and_nothing_else")),

    # The text view
    row("D-114", "§5", "With a base revision, N in a marker is the cell's index in that revision", Done("tests/unit/text/test_merging.py::test_numbers_mean_the_cells_of_the_base")),
    row("D-115", "§5", "Rendering and then parsing is the identity for every notebook of the corpus", Done("tests/property/test_text_corpus.py::test_rendering_and_parsing_is_the_identity_for_every_real_notebook")),
    row("D-116", "§5", "read prints one terminator after the last cell and write strips one", Done("tests/unit/cli/test_output.py::test_read_prints_one_terminator_after_the_last_cell")),
    row("D-117", "§5", "Selectors: :raw, :N, :N-, :A-B, :A+C, several ranges, and a range with :raw", Done("tests/unit/text/test_selection.py::test_every_form_of_range_selects_its_lines")),
    row("D-118", "§5", "Selectors of our own: :cell=ID, :section=Heading and :outline", Done("tests/unit/text/test_selection.py::test_a_cell_a_section_and_the_outline_can_be_selected")),
    row("D-119", "§5", "Errors of the text view carry the line, counted from 1", Done("tests/unit/text/test_parsing.py::test_text_before_the_first_marker_is_refused_with_its_line")),

    # History
    row("D-120", "§4", "The journal keeps every change, who made it, and every revision that a read gave out", Done("tests/integration/test_stories.py::test_the_journal_keeps_every_change_who_made_it_and_every_revision_given_out")),
    row("D-121", "§4", "Undo takes the caller's own newest change by default and restores whole before-images, outputs included", Done("tests/unit/workspace/test_book.py::test_undo_takes_the_callers_own_newest_change_with_its_outputs")),
    row("D-122", "§4", "Undo compares hashes, never outputs, and says that kernel state was not undone", Done("tests/integration/test_stories.py::test_undo_looks_at_sources_and_never_at_outputs_and_says_what_it_cannot_undo")),
    row("D-123", "§4", "Changes made without us become one outside entry", Done("tests/unit/workspace/test_book.py::test_a_change_made_without_us_is_one_outside_entry")),
    row("D-124", "§4", "Backups are a view of the journal's first before-image", Done("tests/integration/test_stories.py::test_any_earlier_state_is_brought_back_to_the_byte")),
    row("D-125", "§7", "The journal is SQLite in WAL mode, one per user and host; rollback mode on network file systems", Done("tests/unit/journal/test_place.py::test_there_is_one_journal_per_user_in_wal_mode_and_in_rollback_mode_on_a_network")),

    # The command line
    row("D-126", "§9", "The commands and their shapes are the design's, as cellwright and as cw", NotYet("batch")),
    row("D-127", "§9", "stdout is data and stderr is talk", Done("tests/integration/test_cli.py::test_stdout_is_data_and_stderr_is_talk")),
    row("D-128", "§9", "--json gives ok, data and error with code, message, hint and retryable", Done("tests/integration/test_cli.py::test_json_is_all_there_is_with_json")),
    row("D-129", "§9", "Exit codes: 0, 1, 2, 3, 4, 5, 6, 124 and 130, as listed", Done("tests/unit/cli/test_exit_codes.py::test_every_error_ends_with_the_one_code_of_its_kind", also=("tests/integration/test_eval.py::test_the_exit_code_says_how_the_cell_ended", "tests/integration/test_eval.py::test_ctrl_c_stops_the_cell_and_leaves_nothing", "tests/unit/cli/test_exit_codes.py::test_a_failing_command_ends_with_its_code_says_why_and_changes_nothing"))),
    row("D-130", "§9", "Progress is shown on a terminal only", Done("tests/integration/test_eval.py::test_on_a_terminal_every_cell_tells_how_far_it_is")),

    # Kernels
    row("D-131", "§6", "The Python is chosen in the stated order, never silently the engine's own", Done("tests/unit/kernel/discovery/test_choice.py::test_what_is_asked_for_comes_before_the_setting_and_that_before_the_notebook", also=("tests/unit/kernel/discovery/test_choice.py::test_the_environment_nearest_the_notebook_comes_before_any_python3", "tests/unit/kernel/discovery/test_choice.py::test_an_active_environment_counts_if_the_project_has_none", "tests/unit/kernel/discovery/test_choice.py::test_a_broken_environment_is_an_error_and_not_passed_over"))),
    row("D-132", "§6", "A project's environment without ipykernel is KERNEL_MISSING with the install command", Done("tests/unit/kernel/discovery/test_choice.py::test_a_project_without_ipykernel_is_an_error_that_says_what_to_install")),
    row("D-133", "§6", "Our variable names and the documents' both reach the kernel", Done("tests/unit/workspace/test_eval.py::test_code_is_told_where_it_is_under_all_names")),
    row("D-134", "§6", "API keys and tokens are withheld from kernels, by name in a hint, with a setting to pass them", Done("tests/unit/workspace/test_eval.py::test_keys_are_withheld_and_the_answer_names_the_one_that_was_missed", also=("tests/unit/kernel/test_supply.py::test_secrets_are_withheld_by_name_and_passed_by_name", "tests/unit/config/test_settings.py::test_what_kernels_may_see_is_not_for_a_project_to_say"))),
    row("D-135", "§6", "cancelled, timed_out and died are separate facts", Done("tests/unit/kernel/test_running.py::test_cancelled_and_died_are_told_apart", also=("tests/kernels/test_behaviour.py::test_a_timeout_interrupts_and_is_told_from_a_cancellation", "tests/kernels/test_behaviour.py::test_a_death_is_noticed_and_said"))),
    row("D-136", "§3", "eval retries once after a kernel's death and says retried and what was lost", Done("tests/unit/workspace/test_eval.py::test_a_crash_is_retried_once_and_said_so")),
    row("D-137", "§6", "No kernel and no descendant of one outlives its owner", Done("tests/unit/kernel/local/test_owners.py::test_nothing_is_left", also=("tests/unit/kernel/runner/test_lives.py::test_nothing_outlives_its_owner_however_busy", "tests/unit/kernel/local/test_owners.py::test_the_next_owner_removes_the_files_of_one_that_was_killed", "tests/integration/test_eval.py::test_a_killed_command_leaves_nothing"))),
    row("D-138", "§6", "A spare warm kernel answers the first cell", Done("tests/unit/kernel/test_supply.py::test_the_second_kernel_is_the_spare_of_the_first", also=("tests/unit/kernel/test_supply.py::test_a_spare_stands_in_for_no_other_kind",))),
    row("D-139", "§6", "Artifact ids are short, random and unguessable", Done("tests/unit/outputs/test_artifacts.py::test_every_id_is_new_short_and_random", also=("tests/unit/outputs/test_artifacts.py::test_no_id_leads_anywhere_else",))),

    # The workspace and its engine
    row("D-140", "§2", "Every edit is read back from its owner before success is reported", Done("tests/unit/workspace/test_book.py::test_an_edit_is_confirmed_only_after_it_is_in_the_file")),
    row("D-141", "§4", "One call edits and runs, and answers with the diff, the executions and what is stale", Done("tests/unit/workspace/test_run.py::test_an_edit_and_its_run_are_one_call")),
    row("D-142", "§3", "A notebook's cell is never re-run by itself after a kernel's death; the replay is offered", Done("tests/unit/workspace/test_run.py::test_a_dead_kernel_is_told_and_nothing_is_run_twice", also=("tests/unit/workspace/test_run.py::test_after_a_death_the_least_is_replayed", "tests/unit/workspace/test_running.py::test_after_a_death_the_answer_says_whose_state_is_lost_and_what_to_replay"))),
    row("D-143", "§4", "A run executes the source the cell had when it was called; outputs of a cell changed since land stale", Done("tests/unit/workspace/test_run.py::test_a_cell_edited_while_it_runs_gets_its_outputs_marked_stale", also=("tests/unit/workspace/test_run.py::test_a_cell_deleted_while_it_runs_keeps_its_outputs_in_the_answer",))),
    row("D-144", "§4", "One set of status words everywhere, with stale and its reason", Done("tests/unit/workspace/test_statuses.py::test_the_best_witness_is_heard", also=("tests/unit/workspace/test_statuses.py::test_a_notebook_tells_it_of_every_code_cell_and_staleness_on_request",))),
    row("D-145", "§2", "A notebook has one kernel, shared by all doors", Done("tests/integration/test_engine_commands.py::test_a_notebook_keeps_its_kernel_from_one_command_to_the_next", also=("tests/integration/test_engine_commands.py::test_a_notebook_that_the_engine_runs_is_owned_elsewhere_for_others",))),
    row("D-146", "§7", "One engine per user and host, started on demand, leaving when idle and empty", Done("tests/integration/test_engine_life.py::test_of_twenty_that_start_it_at_once_all_get_the_same", also=("tests/integration/test_engine_life.py::test_it_leaves_when_idle_and_not_before",))),
    row("D-147", "§7", "A second owner of a notebook gets OWNED_ELSEWHERE, never a second kernel", Done("tests/integration/test_engine_commands.py::test_a_notebook_that_the_engine_runs_is_owned_elsewhere_for_others", also=("tests/unit/workspace/test_leases.py::test_an_owner_keeps_others_from_running_and_writing_and_is_named",))),
    row("D-148", "§7", "A root confines a client's paths", Done("tests/unit/workspace/test_paths.py::test_no_way_leads_out_of_the_root", also=("tests/unit/workspace/test_paths.py::test_a_folder_that_becomes_a_link_during_the_call_leads_nowhere", "tests/unit/engine/test_service.py::test_modes_and_roots_are_each_clients_own"))),
    row("D-149", "§7", "The engine checks the peer's uid and its wire version, and holds no descriptor of its client", Done("tests/integration/test_engine_life.py::test_descriptors_of_whoever_starts_it_do_not_go_along", also=("tests/integration/test_engine_life.py::test_another_user_is_refused_by_the_engine_and_refuses_one_of_another", "tests/integration/test_engine_life.py::test_a_newer_client_makes_it_drain_and_another_can_start_meanwhile", "tests/integration/test_engine_life.py::test_it_keeps_no_pipe_open"))),
    row("D-150", "§7", "Where a socket is impossible everything works in process, and says so", Done("tests/integration/test_engine_life.py::test_where_a_socket_is_impossible_it_works_in_process_and_says_so")),
    row("D-151", "§7", "A run has an id to wait for, detach from, poll, stream and resume from any door", Done("tests/integration/test_engine_commands.py::test_a_run_can_be_left_listed_followed_and_stopped_by_others", also=("tests/unit/workspace/test_parity.py::test_a_run_can_be_left_and_followed_and_stopped",))),

    # Tools and modes
    row("D-152", "§8", "Eight native tools, each naming its notebook by path, with the same words everywhere", Done("tests/unit/tools/test_table.py::test_the_profiles_have_the_tools_of_their_documents")),
    row("D-153", "§8", "Answers keep to a budget, images are images, and the rest is an artifact", Done("tests/unit/tools/test_budget.py::test_no_answer_is_longer_than_its_budget")),
    row("D-154", "§8", "Five profiles keep the documents' own names and schemas working", Done("tests/unit/tools/test_table.py::test_the_parameters_are_those_of_the_document")),
    row("D-155", "§8", "The table of effects and modes holds for every door", Done("tests/unit/tools/test_modes.py::test_a_call_is_allowed_or_answered_with_the_mode_that_allows_it")),
    row("D-156", "§8", "A forbidden tool is not listed, and calling it is MODE_FORBIDS with the mode to switch to", Done("tests/unit/tools/test_modes.py::test_a_tool_of_which_nothing_is_allowed_is_not_listed")),

    # The protocol
    row("D-157", "§3", "execute_cell_range from a running cell is nested, or queued behind its caller; a range with the caller is refused", Done("tests/unit/protocol/test_methods.py::test_cells_are_run_nested_if_the_kernel_offers_it", also=("tests/kernels/test_manipulator_workspace.py::test_cells_that_a_thread_asks_for_are_run_when_the_kernel_is_free", "tests/unit/protocol/test_bridge.py::test_a_nested_cell_cannot_run_the_one_that_waits_for_it"))),
    row("D-158", "§3", "A repeated request id gets the first answer again, and nothing is applied twice", Done("tests/unit/protocol/test_bridge.py::test_a_request_that_comes_again_gets_the_first_answer_and_is_not_done_again")),
    row("D-159", "§3", "Blocking calls work inside a running Python cell", Done("tests/kernels/test_manipulator_workspace.py::test_what_a_kernel_changes_is_on_disk_when_it_is_told_so_and_can_be_undone", also=("tests/kernels/test_manipulator_conformance.py::test_every_statement_about_the_kernels_side_holds",))),

    # The assistant
    row("D-160", "§3", "The notebook context is a message of its own after the system prompt; a setting puts it inside", NotYet("assistant")),
    row("D-161", "§3", "People and prompts count cells from 1, parameters and JSON from 0", NotYet("assistant")),
    row("D-162", "§2", "Without a key, the embedded model carries out tool references by itself", NotYet("assistant")),

    # JupyterLab
    row("D-163", "§2", "A live tab is the truth for the notebook it has open; the answer says host and saved", NotYet("JupyterLab")),
    row("D-164", "§2", "An agent's edits in a tab are saved by default, a kernel's splices are not", NotYet("JupyterLab")),
    row("D-165", "§10", "A wheel ships the built extension, and nobody needs Node to use it", NotYet("JupyterLab")),

    # Many notebooks
    row("D-166", "§1", "Many notebooks run with parameters, in parallel, resumable, on Dask too", NotYet("batch")),
    row("D-167", "§9", "run -p sets parameters without inserting a cell; batch inserts one, in copies", NotYet("batch")),

    # Held by what is measured against others
    row("D-168", "§6", "Pillow is an extra: without it a picture is kept, and said not to be scaled", Done("tests/unit/outputs/test_without_pillow.py::test_a_larger_one_is_kept_and_said_not_to_be_scaled")),
    row("D-169", "§9", "`show` asks the terminal nothing, and what was typed ahead stays", Done("tests/unit/cli/test_show.py::test_the_terminal_is_asked_nothing_and_what_is_typed_ahead_stays")),
    row("D-170", "§4", "Real notebooks give the outputs that nbclient gives, and no other byte of them changes", Done("tests/kernels/test_corpus_runs.py::test_outputs_are_those_of_nbclient_and_nothing_else_changes")),
    row("D-171", "§8", "Over MCP an agent mends a notebook in five calls at most, with clients of both eras", Done("tests/integration/test_mcp_agent.py::test_an_agent_mends_a_notebook_in_four_calls")),
    row("D-172", "§8", "The HTTP door refuses whoever has no token, comes from elsewhere, or asks for too much", Done("tests/integration/test_mcp_http.py::test_who_has_no_business_here_is_refused", also=("tests/integration/test_mcp_http.py::test_it_does_not_listen_beyond_this_machine_in_the_clear",))),
    row("D-173", "§7", "An engine that has worked for long holds no more descriptors, threads and memory than before", Done("tests/integration/test_engine_soak.py::test_an_engine_that_has_worked_has_no_more_than_before")),
    row("D-174", "§7", "Many clients at once lose no edit, and every output is where it belongs, though the engine be killed", Done("tests/integration/test_engine_crowd.py::test_no_edit_is_lost_and_every_output_is_where_it_belongs")),
)
# fmt: on
