"""The design's promises about the document: lossless, durable, edited as data, merged by cell."""

from __future__ import annotations

from tests.behaviour.promise import Done, Measured, row

# fmt: off
ROWS = (
    # Lossless
    row("D-001", "§4", "A save without a change is byte-identical, for every notebook of the corpus", Done("tests/property/test_corpus.py::test_saving_what_was_not_edited_changes_nothing")),
    row("D-002", "§4", "Replacing a cell leaves every byte outside it as it was, for every notebook of the corpus", Done("tests/property/test_corpus.py::test_replacing_a_random_cell_changes_only_its_bytes")),
    row("D-003", "§4", "Inserting a cell leaves every other cell's bytes as they were, for every notebook of the corpus", Done("tests/property/test_corpus.py::test_inserting_at_a_random_place_changes_no_other_byte")),
    row("D-004", "§4", "Deleting a cell leaves every other cell's bytes as they were, for every notebook of the corpus", Done("tests/property/test_corpus.py::test_deleting_a_random_cell_changes_no_other_byte")),
    row("D-005", "§4", "Moving a cell leaves its own bytes and every other cell's as they were, for every notebook of the corpus", Done("tests/property/test_corpus.py::test_moving_a_random_cell_keeps_the_bytes_of_all")),
    row("D-006", "§4", "A metadata edit leaves every byte outside that metadata as it was, for every notebook of the corpus", Done("tests/property/test_corpus.py::test_metadata_of_a_random_cell_and_of_the_notebook_change_nothing_else")),
    row("D-007", "§4", "The same holds for thousands of generated notebooks in generated styles", Done("tests/property/test_lossless.py::test_replacing_a_source_changes_only_that_cell", also=("tests/property/test_lossless.py::test_a_notebook_that_was_not_edited_keeps_every_byte", "tests/property/test_lossless.py::test_inserting_a_cell_changes_no_other_byte", "tests/property/test_lossless.py::test_deleting_a_cell_changes_no_other_byte", "tests/property/test_lossless.py::test_moving_a_cell_keeps_the_bytes_of_all", "tests/property/test_lossless.py::test_metadata_of_a_cell_merge_as_rfc_7396_says", "tests/property/test_lossless.py::test_metadata_of_the_notebook_change_no_cell"))),
    row("D-008", "§4", "Indentation is kept: 0 to 8 spaces, tabs, minified, or mixed", Done("tests/unit/document/test_kept.py::test_indentation_is_kept")),
    row("D-009", "§4", "Key order and the spacing around colons and commas are kept", Done("tests/unit/document/test_kept.py::test_key_order_and_spacing_are_kept")),
    row("D-010", "§4", "Escapes are kept as they are spelled, and so is non-ASCII text that is not escaped", Done("tests/unit/document/test_kept.py::test_escapes_are_kept_as_they_are_spelled")),
    row("D-011", "§4", "Numbers are kept as they are spelled: 1e400, 0.10, integers of any length", Done("tests/unit/document/test_kept.py::test_numbers_are_kept_as_they_are_spelled")),
    row("D-012", "§4", "A source written as a string or as an irregular list stays so in every untouched cell", Done("tests/unit/document/test_kept.py::test_a_source_of_any_form_is_kept")),
    row("D-013", "§4", "Line endings are kept, CRLF and mixed ones too", Done("tests/unit/document/test_kept.py::test_line_ends_are_kept_also_where_they_are_mixed")),
    row("D-014", "§4", "A byte order mark is accepted and kept", Done("tests/unit/document/test_kept.py::test_a_byte_order_mark_is_accepted_and_kept")),
    row("D-015", "§4", "A missing final newline stays missing, and one that is there stays", Done("tests/unit/document/test_kept.py::test_the_end_of_the_file_is_kept")),
    row("D-016", "§4", "Unknown fields are kept at every level", Done("tests/unit/document/test_kept.py::test_unknown_fields_are_kept_at_every_level")),
    row("D-017", "§4", "A new cell takes on the file's own style", Done("tests/unit/document/test_style.py::test_a_new_cell_looks_like_its_neighbours")),

    # What we write
    row("D-018", "§4", "Every line of a source list but the last keeps its newline, split at \\n alone; empty source is []", Done("tests/behaviour/test_documents.py::test_a_source_is_split_into_lines_that_keep_their_newline")),
    row("D-019", "§4", "New code cells get execution_count null and outputs []; markdown and raw cells never carry them", Done("tests/unit/document/test_edits.py::test_code_has_outputs_and_a_count_and_text_never_carries_them")),
    row("D-020", "§4", "A new cell gets a valid, unused id in files that have ids, and none in older ones", Done("tests/unit/document/test_edits.py::test_a_new_cell_gets_an_unused_id_where_the_file_has_ids")),
    row("D-021", "§4", "A new file is nbformat 4.5 with indent 1, a final newline and ids of 8 hex digits", Done("tests/unit/document/test_style.py::test_a_new_notebook_is_written_as_jupyter_writes_one")),
    row("D-022", "§4", "to_bytes gives exactly what write puts into the file", Done("tests/behaviour/test_documents.py::test_a_write_puts_exactly_these_bytes_into_the_file")),

    # Edits are data
    row("D-023", "§4", "Every edit has a typed class and a JSON shape that say the same, both ways", Done("tests/unit/document/test_edits.py::test_a_typed_edit_and_its_json_shape_say_the_same")),
    row("D-024", "§4", "A list of edits is applied as a whole or not at all", Done("tests/unit/document/test_edits.py::test_when_a_later_edit_fails_no_earlier_one_is_made")),
    row("D-025", "§4", "The inverse of any change gives the earlier bytes back", Done("tests/property/test_lossless.py::test_the_inverse_of_any_edits_gives_the_bytes_back")),
    row("D-026", "§4", "All references of a list resolve once, against the notebook before the list", Done("tests/unit/document/test_edits.py::test_references_mean_the_notebook_before_the_list")),
    row("D-027", "§4", "`at: N` is before the cell that had index N", Done("tests/unit/document/test_edits.py::test_at_is_before_the_cell_that_had_that_index")),
    row("D-028", "§4", "Several inserts at one place keep the order of the list", Done("tests/unit/document/test_edits.py::test_several_inserts_at_one_place_keep_the_order_of_the_list")),
    row("D-029", "§3", "An insert with no place given goes to the end", Done("tests/unit/document/test_edits.py::test_an_insert_without_a_place_goes_to_the_end")),
    row("D-030", "§4", "replace sets the source and keeps id, metadata, outputs and count", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-031", "§4", "replace with a type changes the type, and the fields that belong to it", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-032", "§4", "replace with outputs: clear empties outputs and count", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-033", "§4", "replace_text wants its text exactly once, or exactly `count` times, and refuses otherwise", Done("tests/unit/document/test_edits.py::test_replace_text_refuses_any_other_number_of_places")),
    row("D-034", "§4", "insert takes type, id and metadata, and one of after, before and at", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-035", "§4", "delete removes the cell and nothing else", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-036", "§4", "move takes a cell to after, before or at another place, its outputs with it", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-037", "§4", "split cuts a cell in two at a line", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-038", "§4", "merge joins cells into the first of them", Done("tests/unit/document/test_edits.py::test_merge_joins_several_cells_into_the_first_which_keeps_its_outputs")),
    row("D-039", "§4", "set_type changes the type alone and keeps source, id and metadata", Done("tests/unit/document/test_edits.py::test_there_and_back_a_type_change_keeps_source_id_and_metadata")),
    row("D-040", "§4", "set_metadata sets a cell's metadata, or the notebook's when no cell is named", Done("tests/unit/document/test_edits.py::test_metadata_merge_as_rfc_7396_says")),
    row("D-041", "§3", "set_metadata merges by RFC 7396: recursive, null removes; merge is true when absent, false replaces", Done("tests/unit/document/test_edits.py::test_metadata_merge_as_rfc_7396_says")),
    row("D-042", "§4", "clear_outputs clears the named cells, or all of them", Done("tests/unit/document/test_edits.py::test_clear_outputs_clears_the_named_cells_or_all")),
    row("D-043", "§4", "splice replaces a run of cells by others", Done("tests/unit/document/test_edits.py::test_an_operation_writes_exactly_this")),
    row("D-044", "§3", "Explicit nulls in cells that arrive by splice are dropped", Done("tests/unit/document/test_edits.py::test_a_spliced_cell_is_taken_as_it_is_and_completed")),
    row("D-045", "§4", "An edit that makes no sense is INVALID_EDIT and names its place in the list", Done("tests/unit/document/test_edits.py::test_what_is_no_edit_at_all_is_refused_by_its_place")),
    row("D-046", "§4", "A change shows itself as a unified diff that knows cells", Done("tests/unit/document/test_change.py::test_a_diff_shows_exactly_this")),
    row("D-047", "§3", "Outputs stay after a source edit unless they are asked to go", Done("tests/behaviour/test_documents.py::test_outputs_are_kept_or_cleared_as_the_caller_chooses")),

    # Naming a cell
    row("D-048", "§3", "A reference is an exact id, then cell-N, then an integer; negative counts from the end", Done("tests/unit/document/test_refs.py::test_a_reference_finds_one_cell_or_none")),
    row("D-049", "§3", "An id that looks like a number wins over the index", Done("tests/unit/document/test_refs.py::test_an_id_wins_over_what_it_looks_like")),
    row("D-050", "§3", "An unknown cell is CELL_NOT_FOUND with near misses, never a guess", Done("tests/unit/document/test_refs.py::test_an_unknown_cell_comes_with_near_misses")),
    row("D-051", "§3", "An id that two cells have is AMBIGUOUS_CELL and lists both", Done("tests/unit/document/test_refs.py::test_an_id_that_several_cells_have_names_all_their_places")),
    row("D-052", "§3", "Every cell has a handle that names it again, with or without an id", Done("tests/property/test_refs.py::test_every_handle_finds_its_own_cell_again")),

    # Revisions and conflicts
    row("D-053", "§4", "A cell's hash depends on its type and source alone", Done("tests/unit/document/test_revision.py::test_a_hash_depends_on_nothing_but_type_and_source")),
    row("D-054", "§4", "The revision changes with ids, order, types and sources of cells", Done("tests/unit/document/test_revision.py::test_the_revision_changes_with_ids_order_types_and_sources")),
    row("D-055", "§4", "The revision does not change with outputs, counts and metadata", Done("tests/unit/document/test_revision.py::test_the_revision_does_not_change_with_anything_else")),
    row("D-056", "§4", "An edit whose `expect` is not the cell's hash is CONFLICT, shows what the cell holds now, and applies nothing", Done("tests/unit/document/test_conflicts.py::test_an_edit_that_expects_something_else_is_a_conflict_that_shows_the_cell")),
    row("D-057", "§4", "With a base, a touched cell that changed since is CONFLICT, naming the cells and what they hold now", Done("tests/unit/document/test_conflicts.py::test_a_touched_cell_that_was_edited_since_is_a_conflict")),
    row("D-058", "§4", "With a base, changes elsewhere are merged", Done("tests/unit/document/test_conflicts.py::test_a_reference_means_the_cell_of_the_base")),
    row("D-059", "§4", "A base that nobody remembers is UNKNOWN_REVISION, never resolved against the file", Done("tests/unit/document/test_conflicts.py::test_a_revision_that_is_not_the_current_one_is_unknown")),
    row("D-060", "§4", "A file that changed after it was read is noticed under the lock, before the rename, by its bytes", Done("tests/integration/document/test_saving.py::test_an_outside_change_of_the_same_size_and_time_is_a_conflict")),

    # Three-way merge
    row("D-061", "§4", "Cells are aligned by unique id", Done("tests/unit/document/test_merge.py::test_moves_of_either_side_are_followed")),
    row("D-062", "§4", "Cells without a unique id are aligned by the longest common sequence of hashes, then by position", Done("tests/unit/document/test_merge.py::test_without_ids_an_edited_cell_is_found_between_its_neighbours")),
    row("D-063", "§4", "The merged order is the current one; the other side's moves and inserts follow their base predecessor", Done("tests/unit/document/test_merge.py::test_what_does_not_meet_is_merged")),
    row("D-064", "§4", "A cell deleted on one side and edited on the other is a conflict", Done("tests/unit/document/test_merge.py::test_a_cell_deleted_on_one_side_and_edited_on_the_other_is_a_conflict")),
    row("D-065", "§4", "A cell edited differently on both sides is a conflict that shows all three", Done("tests/unit/document/test_merge.py::test_a_cell_edited_differently_on_both_sides_is_a_conflict_that_shows_all_three")),
    row("D-066", "§4", "The same change on both sides is no conflict", Done("tests/property/test_merge.py::test_the_same_on_both_sides_is_the_result_to_the_byte")),
    row("D-067", "§4", "Outputs never conflict: the side that changed them wins, otherwise the current one", Done("tests/unit/document/test_merge.py::test_outputs_are_of_the_side_that_changed_them_otherwise_the_current")),

    # Durable
    row("D-068", "§4", "A save writes a unique temp file beside the target, fsyncs it, renames it, and fsyncs the folder, in this order", Done("tests/faults/test_faults.py::test_a_save_is_durable_before_it_is_visible_and_before_it_is_reported")),
    row("D-069", "§4", "Mode, owner and extended attributes survive a save, or it is refused", Done("tests/integration/document/test_saving.py::test_the_mode_is_kept", also=("tests/integration/document/test_saving.py::test_extended_attributes_are_kept", "tests/integration/document/test_saving.py::test_owner_and_mode_are_kept_together", "tests/integration/document/test_saving.py::test_a_file_whose_owner_would_change_is_refused"))),
    row("D-070", "§4", "A save through a symlink changes its target and leaves the link a link", Done("tests/integration/document/test_saving.py::test_a_save_goes_through_links_and_they_stay_links")),
    row("D-071", "§4", "A file with several hard links is refused unless the caller agrees to split them", Done("tests/integration/document/test_saving.py::test_a_file_with_another_name_is_refused_unless_told_to_part_them")),
    row("D-072", "§4", "A read-only file is refused and unchanged", Done("tests/integration/document/test_saving.py::test_a_read_only_file_is_refused_even_to_root")),
    row("D-073", "§4", "Temp files that a killed save left are cleaned by the next one", Done("tests/integration/document/test_saving.py::test_what_dead_writers_left_is_removed_by_the_next_read")),
    row("D-074", "§4", "A failing save says so, and the file is untouched", Done("tests/integration/document/test_saving.py::test_a_limit_on_the_size_of_files_leaves_the_file_as_it_was")),
    row("D-075", "§4", "A failure after the rename is DURABILITY_UNCONFIRMED, an error of its own", Done("tests/faults/test_faults.py::test_a_save_whose_system_calls_fail_tells_the_truth")),
    row("D-076", "§4", "What cannot be encoded, such as a lone surrogate, fails before any file is touched", Done("tests/integration/document/test_saving.py::test_text_that_cannot_be_written_leaves_the_file_as_it_was")),
    row("D-077", "§7", "Writers of ours are serialised by a lock in the runtime directory, keyed by real path", Done("tests/integration/document/test_saving.py::test_names_of_one_file_share_one_lock", also=("tests/integration/document/test_saving.py::test_the_notebooks_folder_holds_no_lock", "tests/integration/document/test_many_writers.py::test_eight_processes_lose_none_of_their_edits"))),
    row("D-078", "§7", "Waiting for the lock is bounded, and a dead holder frees it", Done("tests/integration/document/test_saving.py::test_the_lock_of_a_killed_writer_is_free")),
    row("D-079", "§4", "Killed at any step of a save, the file holds the old bytes or the new ones", Done("tests/faults/test_faults.py::test_a_save_that_is_killed_leaves_the_old_bytes_or_the_new")),
    row("D-080", "§4", "No injected error of the system is ever reported as a success", Done("tests/faults/test_faults.py::test_a_save_whose_system_calls_fail_tells_the_truth")),
    row("D-081", "§4", "Many processes and an outside editor on one file: every edit is in it, or its caller got CONFLICT", Done("tests/integration/document/test_many_writers.py::test_every_edit_of_eight_processes_is_accounted_for_while_an_outsider_rewrites")),

    # Any input
    row("D-082", "§3", "nbformat 4.0 to 4.4 is edited as it is: no ids written, no version bumped, cell-N handles", Done("tests/unit/document/test_versions.py::test_a_notebook_without_ids_is_edited_as_it_is")),
    row("D-083", "§3", "nbformat 2 and 3 is read through conversion and never edited in place", Done("tests/unit/document/test_versions.py::test_an_old_notebook_is_never_edited_in_place")),
    row("D-084", "§3", "An explicit upgrade makes an old notebook one that can be edited", Done("tests/unit/document/test_versions.py::test_an_old_notebook_that_was_upgraded_is_edited_like_any_other")),
    row("D-085", "§4", "Unknown minor and major versions are accepted exactly or refused by name", Done("tests/unit/document/test_versions.py::test_an_unknown_version_is_accepted_exactly_or_refused_by_name")),
    row("D-086", "§4", "A key that stands twice never makes an edit hit the wrong one", Done("tests/unit/document/test_edits.py::test_a_key_that_stands_twice_never_makes_an_edit_hit_the_wrong_one")),
    row("D-087", "§4", "Duplicate, missing and invalid ids do not keep a notebook from being read and edited", Done("tests/unit/document/test_validity.py::test_duplicate_missing_and_invalid_ids_keep_nothing_from_being_read_and_edited")),
    row("D-088", "§4", "NaN and Infinity are read and kept, and never newly written", Done("tests/unit/document/test_cells.py::test_numbers_that_are_none_are_read_and_kept_and_never_newly_written")),
    row("D-089", "§4", "Nesting of 1000 and more, and integers of thousands of digits, raise no traceback", Done("tests/property/test_cells.py::test_no_depth_and_no_length_of_a_number_raises_anything_but_ours")),
    row("D-090", "§4", "Invalid UTF-8 and UTF-16 are refused by name", Done("tests/property/test_malformed.py::test_what_is_no_notebook_is_refused_by_name")),
    row("D-091", "§4", "An empty file, a folder, a FIFO and a device are refused at once, by name", Done("tests/integration/document/test_reading.py::test_what_is_no_notebook_is_refused_at_once")),
    row("D-092", "§4", "A file over the size limit is refused without being read", Done("tests/integration/document/test_reading.py::test_a_file_of_two_gigabytes_is_refused_by_its_size")),
    row("D-093", "§4", "A broken cell is named by its position while the others can be used", Done("tests/unit/document/test_cells.py::test_a_broken_cell_is_named_by_its_position_while_the_others_can_be_used")),
    row("D-094", "§4", "At least 150 malformed inputs are each accepted exactly or refused by a one-line named error", Done("tests/property/test_malformed.py::test_what_is_no_notebook_is_refused_by_name", also=("tests/property/test_malformed.py::test_an_odd_file_is_taken_as_it_is", "tests/property/test_malformed.py::test_the_table_is_long_enough_and_covers_both_outcomes"))),

    # Validity and cost
    row("D-095", "§4", "A notebook that was valid is valid against its own schema after any edit", Done("tests/property/test_lossless.py::test_a_valid_notebook_stays_valid_whatever_is_edited")),
    row("D-096", "§4", "The edited part is valid even if the rest was not", Done("tests/unit/document/test_validity.py::test_an_edited_cell_gets_what_it_lacked_and_the_others_stay_as_they_are")),
    row("D-097", "§1", "The standard-library scanner and msgspec read every notebook alike", Done("tests/property/test_lossless.py::test_both_parsers_find_the_same_cells")),
    row("D-098", "§1", "import cellwright imports nothing heavy, and what it does not import is pinned", Done("tests/integration/project/test_imports.py::test_importing_the_package_imports_nothing_else")),
    row("D-099", "§1", "import cellwright costs at most twice the CPU of an empty Python, and reading 20 cells at most six times", Measured("benchmarks/cold_start.py")),
)
# fmt: on
