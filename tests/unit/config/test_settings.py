from __future__ import annotations

import dataclasses
import os
import pickle
from copy import copy
from typing import TYPE_CHECKING

import pytest

from cellwright.config import defaults, loading, settings
from cellwright.config.loading import load
from cellwright.config.settings import SPECS, Settings
from cellwright.errors import BadConfigFile, InvalidSetting, UnknownSetting

if TYPE_CHECKING:
    from pathlib import Path

ORIGINS = ("default", "user", "project", "variable", "flag")


@dataclasses.dataclass
class Folders:
    """A project folder and a user's configuration folder of the test's own."""

    project: Path
    user: Path

    def load(self, *, environ: dict[str, str] | None = None, **overrides: object) -> Settings:
        return load(self.project, environ or {}, overrides)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    project = tmp_path / "work" / "project"
    project.mkdir(parents=True)
    user = tmp_path / "config"
    user.mkdir()
    monkeypatch.setattr(loading, "config_folder", lambda: str(user))
    return Folders(project, user)


def test_the_defaults_are_the_numbers_of_the_design(folders: Folders) -> None:
    assert folders.load().to_json() == {
        "max_file_bytes": 512 * 1024 * 1024,
        "lock_timeout": 30,
        "eval_sessions_kept": 4,
        "eval_sessions_total": 32,
        "eval_session_idle_timeout": 300,
        "session_sweep_interval": 30,
        "heartbeat_interval": 5,
        "kernel_restarts_allowed": 1,
        "interrupt_grace": 5,
        "output_bytes_kept": 50 * 1024,
        "output_lines_kept": 3000,
        "notebook_output_bytes": 10 * 1024 * 1024,
        "run_save_interval": 2,
        "artifact_quota_bytes": 1024 * 1024 * 1024,
        "artifact_max_bytes": 256 * 1024 * 1024,
        "eval_timeout": 30,
        "eval_timeout_max": 3600,
        "notebook_session_idle_timeout": 3600,
        "session_wait_timeout": 30,
        "kernel_start_timeout": 60,
        "kernel": "",
        "spare_kernel": True,
        "pass_variables": (),
        "server": "",
        "servers": (),
        "engine": "auto",
        "engine_idle_timeout": 60,
        "edit_mode_edits": False,
        "assistant_model": "",
        "eval_mode": "session",
        "assistant_base_url": "",
        "assistant_max_tokens": 16384,
        "assistant_timeout": 120,
        "assistant_retries": 4,
        "assistant_images": True,
        "assistant_prompts": "",
        "assistant_prompts_off": (),
        "assistant_context_in_system_prompt": False,
        "assistant_transcripts": True,
    }


def test_every_setting_has_a_sentence_and_a_range_that_holds_its_default() -> None:
    for name, spec in SPECS.items():
        assert spec.about, name
        assert spec.check(spec.default, "here") == spec.default, name


def test_every_constant_is_the_default_of_a_setting() -> None:
    constants = {name: value for name, value in vars(defaults).items() if name.isupper()}
    assert constants
    for name, value in constants.items():
        assert SPECS[name.lower()].default == value, name


def set_in(folders: Folders, origin: str, value: float) -> dict[str, object]:
    """Set `lock_timeout` in one kind of place; what a call must pass comes back."""
    if origin == "user":
        (folders.user / "config.toml").write_text(f"lock_timeout = {value}\n")
    elif origin == "project":
        (folders.project / "cellwright.toml").write_text(f"lock_timeout = {value}\n")
    elif origin == "variable":
        return {"environ": {"CELLWRIGHT_LOCK_TIMEOUT": str(value)}}
    elif origin == "flag":
        return {"lock_timeout": value}
    return {}


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [(weaker, stronger) for i, weaker in enumerate(ORIGINS) for stronger in ORIGINS[i + 1 :]],
)
def test_the_stronger_origin_wins_and_is_remembered(
    weaker: str, stronger: str, folders: Folders
) -> None:
    call = set_in(folders, weaker, 7) | set_in(folders, stronger, 8)

    found = folders.load(**call)  # type: ignore[arg-type]  # `environ` or a flag

    assert found.lock_timeout == 8
    assert found.origin("lock_timeout").kind == stronger


def test_an_origin_names_its_place(folders: Folders) -> None:
    (folders.user / "config.toml").write_text("heartbeat_interval = 1\n")
    (folders.project / "cellwright.toml").write_text("eval_timeout = 2\n")

    found = folders.load(environ={"CELLWRIGHT_INTERRUPT_GRACE": "3"}, lock_timeout=4)

    assert [
        str(found.origin(name))
        for name in (
            "heartbeat_interval",
            "eval_timeout",
            "interrupt_grace",
            "lock_timeout",
            "eval_sessions_kept",
        )
    ] == [
        f"user {folders.user / 'config.toml'}",
        f"project {folders.project / 'cellwright.toml'}",
        "variable CELLWRIGHT_INTERRUPT_GRACE",
        "flag --lock-timeout",
        "default",
    ]


def test_the_origin_of_no_setting_is_a_key_error(folders: Folders) -> None:
    with pytest.raises(KeyError):
        folders.load().origin("origins")


def test_the_nearest_project_file_going_up_is_the_only_one(folders: Folders) -> None:
    (folders.project.parent / "cellwright.toml").write_text("lock_timeout = 1\neval_timeout = 1\n")
    below = folders.project / "a" / "b"
    below.mkdir(parents=True)

    assert load(below, {}).lock_timeout == 1

    (folders.project / "pyproject.toml").write_text("[tool.cellwright]\nlock_timeout = 2\n")
    found = load(below, {})

    assert (found.lock_timeout, found.eval_timeout) == (2, 30)
    assert found.origin("lock_timeout").place == (
        f"{folders.project / 'pyproject.toml'} [tool.cellwright]"
    )


def test_a_pyproject_without_our_table_is_passed_over(folders: Folders) -> None:
    (folders.project.parent / "cellwright.toml").write_text("lock_timeout = 1\n")
    (folders.project / "pyproject.toml").write_text('[project]\ndependencies = ["cellwright"]\n')

    assert folders.load().lock_timeout == 1


def test_beside_our_own_file_pyproject_is_mute(folders: Folders) -> None:
    (folders.project / "cellwright.toml").write_text("lock_timeout = 1\n")
    (folders.project / "pyproject.toml").write_text("[tool.cellwright]\nlock_timeout = 2\n")

    assert folders.load().lock_timeout == 1


def test_a_broken_pyproject_that_never_mentions_us_is_not_our_business(folders: Folders) -> None:
    (folders.project / "pyproject.toml").write_text("[project\n")

    assert folders.load() == Settings()


def test_the_working_directory_and_the_process_environment_are_the_usual_ones(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders.project / "cellwright.toml").write_text("lock_timeout = 1\n")
    monkeypatch.chdir(folders.project)
    for variable in [name for name in os.environ if name.startswith("CELLWRIGHT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("CELLWRIGHT_EVAL_TIMEOUT", "2")

    found = load()

    assert (found.lock_timeout, found.eval_timeout) == (1, 2)


def test_a_working_directory_that_was_removed_has_no_project(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders.project)
    folders.project.rmdir()

    assert load(None, {}) == Settings()


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5.0), ("0.25", 0.25), (" 7 ", 7.0), ("1e2", 100.0)]
)
def test_variables_are_read_as_numbers(text: str, value: float, folders: Folders) -> None:
    found = folders.load(environ={"CELLWRIGHT_LOCK_TIMEOUT": text})

    assert found.lock_timeout == value


def test_a_whole_number_serves_where_a_fraction_may_stand(folders: Folders) -> None:
    (folders.project / "cellwright.toml").write_text("lock_timeout = 5\n")

    assert repr(folders.load().lock_timeout) == "5.0"


def test_an_empty_variable_and_a_flag_of_none_are_not_set(folders: Folders) -> None:
    found = folders.load(environ={"CELLWRIGHT_LOCK_TIMEOUT": ""}, lock_timeout=None)

    assert found.origin("lock_timeout").kind == "default"


@pytest.mark.parametrize(
    "variable",
    [
        "CELLWRIGHT_ARTIFACTS_DIR",
        "CELLWRIGHT_BENCH_ROUNDS",
        "CELLWRIGHT_NO_PROGRESS",
        "CELLWRIGHT_RUNTIME_DIR",
        "CELLWRIGHT_KERNEL_MARK",
        "CELLWRIGHT_SERVER_TOKEN",
        "CELLWRIGHT_SESSION_FILE",
        "CELLWRIGHT_TEST_CORPUS",
        "CELLWRIGHT_TOOL_BRIDGE_TOKEN",
        "PATH",
    ],
)
def test_variables_that_are_no_settings_are_left_alone(variable: str, folders: Folders) -> None:
    found = folders.load(environ={variable: "anything"})

    assert (found, found.warnings) == (Settings(), ())


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("CELLWRIGHT_LOCK_TIMOUT", "CELLWRIGHT_LOCK_TIMEOUT"),
        ("CELLWRIGHT_lock_timeout", "CELLWRIGHT_LOCK_TIMEOUT"),
        ("CELLWRIGHT_NO_PROGRESS_AT_ALL", None),
    ],
)
def test_an_unknown_variable_is_ignored_with_a_warning_and_a_near_one(
    variable: str, near: str | None, folders: Folders
) -> None:
    found = folders.load(environ={variable: "1"})

    assert found == Settings()
    (warning,) = found.warnings
    assert variable in warning
    assert (f"did you mean {near}?" in warning) == (near is not None)


@pytest.mark.parametrize("kind", ["project", "pyproject", "user"])
def test_an_unknown_key_in_a_file_is_refused_with_a_near_one(kind: str, folders: Folders) -> None:
    path = {
        "project": folders.project / "cellwright.toml",
        "pyproject": folders.project / "pyproject.toml",
        "user": folders.user / "config.toml",
    }[kind]
    path.write_text(("[tool.cellwright]\n" if kind == "pyproject" else "") + "lock-timeout = 1\n")

    with pytest.raises(UnknownSetting) as caught:
        folders.load()

    assert caught.value.key == "lock-timeout"
    assert caught.value.place.startswith(str(path))
    assert caught.value.hint == "Did you mean `lock_timeout`?"


def test_an_unknown_flag_is_refused_with_a_near_one(folders: Folders) -> None:
    with pytest.raises(UnknownSetting) as caught:
        folders.load(eval_timeouts=3)

    assert caught.value.hint == "Did you mean `eval_timeout`?"


def test_a_mistake_in_a_file_is_told_even_when_a_flag_outdoes_it(folders: Folders) -> None:
    (folders.user / "config.toml").write_text("lock_timeout = -1\n")

    with pytest.raises(InvalidSetting):
        folders.load(lock_timeout=1)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("lock_timeout", "true"),
        ("lock_timeout", '"30"'),
        ("lock_timeout", "[30]"),
        ("lock_timeout", "{ seconds = 30 }"),
        ("lock_timeout", "-0.1"),
        ("lock_timeout", "nan"),
        ("lock_timeout", "inf"),
        ("lock_timeout", "1e300"),
        ("lock_timeout", "1979-05-27"),
        ("eval_sessions_kept", "4.0"),
        ("eval_sessions_kept", "0"),
        ("eval_sessions_kept", "false"),
        ("max_file_bytes", "1"),
    ],
)
def test_a_wrong_type_or_an_impossible_number_in_a_file_is_refused(
    name: str, written: str, folders: Folders
) -> None:
    path = folders.project / "cellwright.toml"
    path.write_text(f"{name} = {written}\n")

    with pytest.raises(InvalidSetting) as caught:
        folders.load()

    assert (caught.value.key, caught.value.place) == (name, str(path))
    assert SPECS[name].accepted_values in str(caught.value.hint)


@pytest.mark.parametrize("text", ["soon", "5s", "nan", "-1", "true", "0x10", "9" * 5000])
def test_a_wrong_variable_is_refused_by_its_name(text: str, folders: Folders) -> None:
    with pytest.raises(InvalidSetting) as caught:
        folders.load(environ={"CELLWRIGHT_LOCK_TIMEOUT": text})

    assert caught.value.place == "CELLWRIGHT_LOCK_TIMEOUT"
    assert caught.value.hint == "It must be a number from 0 to 31,536,000"


def test_a_fraction_is_no_whole_number(folders: Folders) -> None:
    with pytest.raises(InvalidSetting) as caught:
        folders.load(eval_sessions_kept="1.5")

    assert caught.value.place == "--eval-sessions-kept"
    assert caught.value.hint == "It must be a whole number from 1 to 1,024"


@pytest.mark.parametrize(
    ("given", "blamed"),
    [
        ({"eval_timeout": 4000}, "eval_timeout"),
        ({"eval_timeout_max": 10}, "eval_timeout_max"),
        ({"eval_timeout": 20, "eval_timeout_max": 10}, "eval_timeout"),
    ],
)
def test_the_usual_timeout_may_not_exceed_the_longest(
    given: dict[str, float], blamed: str, folders: Folders
) -> None:
    with pytest.raises(InvalidSetting) as caught:
        load(folders.project, {}, given)

    assert caught.value.key == blamed


def test_no_timeout_and_no_longest_timeout_are_allowed(folders: Folders) -> None:
    assert folders.load(eval_timeout=0).eval_timeout == 0
    assert folders.load(eval_timeout=9000, eval_timeout_max=0).eval_timeout == 9000


def test_settings_made_by_hand_are_checked_too() -> None:
    with pytest.raises(InvalidSetting, match="the arguments"):
        Settings(lock_timeout=-1)


def test_settings_cannot_be_changed(folders: Folders) -> None:
    found = folders.load()

    with pytest.raises(AttributeError):
        found.lock_timeout = 1  # type: ignore[misc]


def test_settings_can_be_sent_to_another_process(folders: Folders) -> None:
    found = folders.load(lock_timeout=3)
    copy = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes

    assert copy == found
    assert copy.origin("lock_timeout") == found.origin("lock_timeout")


def test_a_project_may_set_every_limit_that_is_its_own(folders: Folders) -> None:
    shared = ("artifact_quota_bytes",)  # a small one would remove what other projects have
    limits = {name: spec for name, spec in SPECS.items() if spec.is_number and name not in shared}
    assert not any(SPECS[name].project_may_set for name in shared)
    assert all(spec.project_may_set for spec in limits.values())

    lines = [f"{name} = {spec.default}" for name, spec in limits.items()]
    (folders.project / "cellwright.toml").write_text("\n".join(lines))

    assert {folders.load().origin(name).kind for name in limits} == {"project"}


def test_what_kernels_may_see_is_not_for_a_project_to_say(folders: Folders) -> None:
    (folders.project / "cellwright.toml").write_text('pass_variables = ["OPENAI_API_KEY"]\n')

    with pytest.raises(InvalidSetting, match="pass_variables") as caught:
        folders.load()
    assert "a project may not set it" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", '"/repo/python"'),
        ("assistant_base_url", '"https://example.invalid"'),
        ("assistant_model", '"openai:x"'),
        ("assistant_prompts", '"prompts"'),
        ("assistant_prompts_off", '["agent.md"]'),
        ("assistant_context_in_system_prompt", "true"),
        ("assistant_images", "true"),
        ("assistant_transcripts", "true"),
        ("server", '"https://example.invalid"'),
        ("servers", '["https://example.invalid"]'),
        ("edit_mode_edits", "true"),
        ("engine", '"never"'),
    ],
)
def test_a_project_chooses_no_interpreter_prompt_or_address(
    name: str, value: str, folders: Folders
) -> None:
    (folders.project / "cellwright.toml").write_text(f"{name} = {value}\n")

    with pytest.raises(InvalidSetting, match=name) as caught:
        folders.load()
    assert "a project may not set it" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["cellwright.toml", "pyproject.toml"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_project_file_that_others_may_write_is_ignored_with_a_warning(
    what: str, name: str, folders: Folders
) -> None:
    path = folders.project / name
    path.write_text("[tool.cellwright]\n" * (name == "pyproject.toml") + "lock_timeout = 1\n")
    assert folders.load().lock_timeout == 1
    (path if what == "file" else path.parent).chmod(0o777)

    found = folders.load()

    assert found.lock_timeout == Settings().lock_timeout
    assert f"{path} is ignored: all users may write" in found.warnings[0]


def test_texts_switches_and_lists_are_read_from_files_and_variables(folders: Folders) -> None:
    (folders.user / "config.toml").write_text(
        'kernel = "ir"\nspare_kernel = false\npass_variables = ["A_KEY", "B_KEY"]\n'
    )
    found = folders.load()
    assert (found.kernel, found.spare_kernel) == ("ir", False)
    assert found.pass_variables == ("A_KEY", "B_KEY")

    found = load(
        folders.project,
        {
            "CELLWRIGHT_KERNEL": "deno",
            "CELLWRIGHT_SPARE_KERNEL": "yes",
            "CELLWRIGHT_PASS_VARIABLES": "C, D",
        },
    )
    assert (found.kernel, found.spare_kernel, found.pass_variables) == ("deno", True, ("C", "D"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("spare_kernel", "perhaps", "true or false"),
        ("spare_kernel", 1, "true or false"),
        ("kernel", 3, "a text"),
        ("pass_variables", [1], "a list of names"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: object, expected: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        load(overrides={name: value}, environ={})
    assert expected in str(caught.value.hint)


def test_what_a_project_may_not_set_only_the_user_can(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = copy(SPECS["lock_timeout"])
    guarded.project_may_set = False
    for module in (settings, loading):
        monkeypatch.setattr(module, "SPECS", {**SPECS, "lock_timeout": guarded})
    (folders.user / "config.toml").write_text("lock_timeout = 1\n")

    assert folders.load().lock_timeout == 1

    (folders.project / "cellwright.toml").write_text("lock_timeout = 2\n")

    with pytest.raises(InvalidSetting, match=r"cellwright\.toml") as caught:
        folders.load()
    assert "a project may not set it" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"lock_timeout = 1\nlock_timeout = = 2\n", "line 2"),
        (b"lock_timeout = 1\nlock_timeout = 2\n", "line 2"),
        (b"lock_timeout = 1\n# caf\xe9\n", "line 2"),
        (b"\x00", "line 1"),
        (b"a = " + b"[" * 20_000, "too deeply"),
        (b"#" * (2**20 + 1), "1,048,576 bytes"),
    ],
    ids=["syntax", "twice", "latin-1", "binary", "deep", "large"],
)
def test_a_file_that_is_no_toml_is_refused_with_the_place(
    content: bytes, reason: str, folders: Folders
) -> None:
    path = folders.project / "cellwright.toml"
    path.write_bytes(content)

    with pytest.raises(BadConfigFile, match=reason) as caught:
        folders.load()

    assert caught.value.place == str(path)


def test_a_broken_pyproject_that_mentions_us_is_refused_with_the_line(folders: Folders) -> None:
    (folders.project / "pyproject.toml").write_text("[tool.cellwright]\nlock_timeout =\n")

    with pytest.raises(BadConfigFile, match="line 2"):
        folders.load()


@pytest.mark.parametrize("content", ["[tool]\ncellwright = 3\n", "tool = 'cellwright'\n"])
def test_a_table_of_ours_that_is_none_is_refused_or_not_ours(
    content: str, folders: Folders
) -> None:
    (folders.project / "pyproject.toml").write_text(content)

    if "[tool]" in content:
        with pytest.raises(BadConfigFile, match="not a table"):
            folders.load()
    else:
        assert folders.load() == Settings()


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, folders: Folders) -> None:
    path = folders.project / "cellwright.toml"
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)

    with pytest.raises(BadConfigFile, match="regular"):
        folders.load()
