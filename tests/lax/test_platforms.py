"""platform_dependent: the branch of the platform that a program is lowered for."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce

X = np.float32([0.5, 1, 2])


def chosen(x):
    return lax.platform_dependent(x, cpu=jnp.sin, tpu=lambda x: x * x, default=jnp.exp)


def text_for(f, platform):
    return jax.jit(f).trace(X).lower(lowering_platforms=(platform,)).as_text()


def test_each_platform_gets_its_branch_alone():
    operations = {"cpu": "sine", "tpu": "multiply", "cuda": "exponential", "gpu": "exponential"}
    for platform, name in operations.items():
        text = text_for(chosen, platform)
        assert f"stablehlo.{name} " in text and "stablehlo.case" not in text
        assert not any(f"stablehlo.{other} " in text
                       for other in set(operations.values()) - {name})
    on_gpu = lambda x: lax.platform_dependent(x, cuda=jnp.sin, default=jnp.exp)  # noqa: E731
    assert "stablehlo.sine" in text_for(on_gpu, "gpu")


TRANSFORMS = {
    "itself": lambda f: f,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "vmap": lambda f: jax.vmap(f),
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f)),
    "hessian": lambda f: jax.hessian(lambda x: f(x).sum()),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: jax.vmap(f)(x).sum())),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("how", TRANSFORMS)
def test_transformations_are_those_of_the_branch(how, wrap):
    got, want = TRANSFORMS[how](wrap(chosen))(X), TRANSFORMS[how](jnp.sin)(X)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


def test_the_choice_goes_through_derivatives_and_batches():
    for how in ("grad", "vmap", "vmap of grad", "reverse over reverse"):
        f = jax.jit(TRANSFORMS[how](chosen))
        check_jaxpr(dce(jax.make_jaxpr(f)(X)).jaxpr)
        text = text_for(f, "tpu")
        assert "stablehlo.sine" not in text and "stablehlo.cosine" not in text
        assert "stablehlo.case" not in text


def test_a_branch_may_serve_several_platforms():
    both = lambda x: x + 1  # noqa: E731
    closed = jax.make_jaxpr(lambda x: lax.platform_dependent(x, cpu=both, tpu=both))(X)
    assert closed.eqns[1].params["branches_platforms"] == (("cpu", "tpu"),)
    np.testing.assert_array_equal(
        jax.jit(lambda x: lax.platform_dependent(x, cpu=both, tpu=both))(X), X + 1)


def test_pytrees_and_what_branches_close_over():
    @jax.jit
    def f(x, y):
        z = jnp.cos(y)
        return lax.platform_dependent({"x": x}, tpu=lambda d: (d["x"], z),
                                      default=lambda d: (d["x"] * z, y))

    np.testing.assert_allclose(f(2.0, 3.0), (2 * np.cos(3), 3), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x, y: f(x, y)[0], (0, 1))(2.0, 3.0),
                               (np.cos(3), -2 * np.sin(3)), rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_platform_without_branch(wrap):
    f = wrap(lambda x: lax.platform_dependent(x, tpu=jnp.sin))
    with pytest.raises(NotImplementedError, match="not found for platform cpu"):
        f(X)
    with pytest.raises(ValueError, match="Use 'cuda', 'rocm', or 'oneapi'"):
        lax.platform_dependent(X, gpu=jnp.sin)
    with pytest.raises(TypeError, match="the branch of tpu"):
        jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=lambda x: (x, x)))(X)


def test_who_drops_the_platforms_takes_the_right_branch():
    from pyjx.experimental import checkify, sparse

    def f(x):
        return lax.platform_dependent(x, tpu=lambda x: jnp.log(x) * 0 + 100.0, cpu=lambda x: x / 1)

    error, out = checkify.checkify(jax.jit(f), errors=checkify.all_checks)(4.0)
    error.throw()
    assert out == 4
    doubled = sparse.sparsify(jax.jit(
        lambda m: lax.platform_dependent(m, tpu=lambda m: 3 * m, default=lambda m: 2 * m)))
    assert doubled(sparse.eye(2)).todense().tolist() == [[2, 0], [0, 2]]
    assert jax.grad(lambda x: f(x) * x)(3.0) == 6
    np.testing.assert_array_equal(jax.vmap(f)(X), X)
