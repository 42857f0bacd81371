"""The faces of the verbs: methods of both kinds of workspace and notebook, made from one table."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cellwright.errors import InvalidEdit
from cellwright.workspace.api.requests import VERBS, Request
from cellwright.workspace.workspace import AsyncBook, AsyncWorkspace, Book, Workspace

# What is not a verb: how a face is opened and closed.
OWN = {"open", "close"}
FACES = [(Workspace, Book), (AsyncWorkspace, AsyncBook)]


def methods(face: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(face).items()
        if name[0] != "_" and inspect.isfunction(value)
    }


def expected(verb: str) -> list[inspect.Parameter]:
    """Return the parameters that a method of a verb has, by the fields of its request."""
    request: type[Request[Any]] = VERBS[verb]
    found = []
    for name, kind, default in request.list_parameters():
        how = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if kind == "keyword":
            how = inspect.Parameter.KEYWORD_ONLY
        value = inspect.Parameter.empty if default is ... else default
        found.append(inspect.Parameter(name, how, default=value))
    return found[1:] if verb in methods(Book) else found


@pytest.mark.parametrize(("workspace", "book"), FACES)
def test_every_verb_is_a_method_of_a_workspace_or_of_a_notebook(
    workspace: type, book: type
) -> None:
    assert (set(methods(workspace)) | set(methods(book))) - OWN == set(VERBS)
    assert set(methods(workspace)) & set(methods(book)) == set()
    assert set(methods(workspace)) == set(methods(Workspace))
    assert set(methods(book)) == set(methods(Book))


@pytest.mark.parametrize("verb", VERBS)
def test_a_method_has_the_parameters_and_the_words_of_its_verb(verb: str) -> None:
    for faces in FACES:
        (face,) = [each for each in faces if verb in methods(each)]
        method = methods(face)[verb]
        assert method.__name__ == verb
        first, *rest = inspect.signature(method).parameters.values()
        assert first.name == "self"
        if verb == "load":
            # Its callback, which reads the file that the engine names, is not for callers.
            assert rest == []
            assert VERBS[verb].__doc__ == f"{method.__doc__}"
        else:
            assert rest == expected(verb)
            assert method.__doc__ == VERBS[verb].__doc__


def test_methods_of_async_faces_are_awaited_and_no_others() -> None:
    for kind in (AsyncWorkspace, AsyncBook):
        for name, method in methods(kind).items():
            assert inspect.iscoroutinefunction(method) == (name != "open"), name
    for kind in (Workspace, Book):
        assert not any(map(inspect.iscoroutinefunction, methods(kind).values()))


def test_constructors_take_the_same_arguments() -> None:
    here, there = (
        list(inspect.signature(kind.__init__).parameters) for kind in (Workspace, AsyncWorkspace)
    )
    assert here == there


def test_a_call_that_does_not_fit_is_a_type_error_as_for_any_function() -> None:
    with Workspace() as workspace:
        book = workspace.open("nb.ipynb")
        for wrong in (
            lambda: book.edit(run="changed"),  # type: ignore[call-arg]
            lambda: book.read(nonsense=1),  # type: ignore[call-arg]
            lambda: book.read(True),  # type: ignore[call-arg]
            lambda: book.select("a", selector="b"),  # type: ignore[misc]
        ):
            with pytest.raises(TypeError):
                wrong()


@pytest.mark.parametrize("kind", [Workspace, AsyncWorkspace])
def test_an_unknown_mode_is_refused(kind: type) -> None:
    with pytest.raises(InvalidEdit, match="god"):
        kind(mode="god")
