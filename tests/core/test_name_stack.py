"""Name stacks: scopes, transformations and threads."""

import threading

import pytest

from pyjx.core.name_stack import (
    NameStack,
    current_name_stack,
    named_scope,
    reset_name_stack,
    set_name_stack,
)


def test_name_stack_text_puts_a_transformation_around_the_next_entry_only():
    stack = NameStack().extend("outer").transform("jvp").extend("a").extend("b")
    assert str(stack) == "outer/jvp(a)/b"
    assert str(NameStack().transform("vmap").transform("jvp").extend("x")) == "vmap(jvp(x))"
    assert str(NameStack().extend("x").transform("jvp")) == "x/jvp()"
    assert str(NameStack()) == ""


def test_name_stack_equality_tells_scopes_from_transformations():
    assert NameStack().extend("a") == NameStack().extend("a")
    assert hash(NameStack().extend("a")) == hash(NameStack().extend("a"))
    assert NameStack().extend("jvp") != NameStack().transform("jvp")
    assert len(NameStack().extend("a").extend("b")) == 2


def test_named_scope_nests_is_reusable_and_survives_exceptions():
    scope = named_scope("a")
    with scope, named_scope("b"), scope:
        assert str(current_name_stack()) == "a/b/a"
    with pytest.raises(ZeroDivisionError), scope:
        1 / 0  # noqa: B018
    assert str(current_name_stack()) == ""


def test_named_scope_as_decorator_keeps_the_name_and_the_result():
    @named_scope("layer")
    def fun(x, *, y):
        """Doc."""
        return str(current_name_stack()), x + y

    assert fun(1, y=2) == ("layer", 3)
    assert (fun.__name__, fun.__doc__) == ("fun", "Doc.")


@pytest.mark.parametrize("name", [1, None, b"x"])
def test_named_scope_wants_a_string(name):
    with pytest.raises(TypeError, match="named_scope name argument must be a string"):
        named_scope(name)


def test_name_stacks_belong_to_threads():
    seen = []
    with named_scope("main"):
        thread = threading.Thread(
            target=lambda: seen.append(str(current_name_stack()))
        )
        thread.start()
        thread.join()
    assert seen == [""]


def test_set_and_reset_name_stack():
    stack = NameStack().extend("given")
    with named_scope("a"):
        with reset_name_stack(), named_scope("b"):
            assert str(current_name_stack()) == "b"
        with set_name_stack(stack):
            assert current_name_stack() is stack
        assert str(current_name_stack()) == "a"
