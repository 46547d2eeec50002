"""Tangents and cotangents as arguments of what the command emits."""

import pytest


def test_directions_of_mapped_functions(run):
    text = run("-c", "lambda x, n: x * n", "f32[5,3]", "i32[5,3]", "--vjp", "--vmap", "--emit",
               "jaxpr")[1]
    assert "b:f32[5,3] c:i32[5,3] d:f32[5,3]. let" in text  # behind a constant, zeros
    text = run("-c", "lambda x, n: x * n", "f32[3]", "i32[3]", "--jvp", "--emit", "jaxpr")[1]
    assert "a:f32[3] b:i32[3] c:f32[3]. let" in text
    assert run("-c", "lambda x, n: x * n", "f32[5,3]", "i32[5,3]", "--jvp", "--vmap")[0] == 0


@pytest.mark.parametrize(("options", "types"), [
    (("--vjp", "--vmap=None,0"), "c:f32[9,2,3]"),
    (("--vjp", "--jit", "--vmap=None,0"), "c:f32[9,2,3]"),
    (("--jvp", "--vmap=None,0"), "c:f32[4,3] d:f32[9,2,4]"),
    (("--jvp", "--vmap=None,1"), "c:f32[4,3] d:f32[9,2,4]"),
    (("--vjp", "--jvp", "--vmap=None,1"), "c:f32[2,9,3] d:f32[4,3] e:f32[9,2,4] f:f32[2,9,3]"),
    (("--vjp", "--vmap=None,0", "--vmap=None,1"), "c:f32[2,9,3]"),
])
def test_directions_have_the_axes_of_what_they_belong_to(run, options, types):
    status, text, err = run("-c", "lambda w, x: jnp.tanh(x @ w)", "f32[4,3]", "f32[9,2,4]",
                            *options, "--emit", "jaxpr")
    assert (status, err) == (0, "") and f"a:f32[4,3] b:f32[9,2,4] {types}. let" in text


def test_directions_have_no_axes_of_their_own(run):
    status, _, err = run("-c", "lambda x, y: x * y", "f32[3]", "f32[3]", "--vjp", "--vmap=0,0,0")
    assert status == 2
    assert "3 axes for 2 arguments; tangents and cotangents have those of" in err
