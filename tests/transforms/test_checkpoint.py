"""`checkpoint`: the same numbers as without it, under all transformations, from fewer residuals."""

import functools
import re
from collections import Counter

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import ad_checkpoint, configuration, lax
from pyjx.core.check import check_jaxpr
from pyjx.core.primitive import Primitive

X = np.linspace(0.1, 1.0, 4).astype(np.float32)
W = (np.arange(16).reshape(4, 4) / 16 - 0.4).astype(np.float32)


def close(got, want, **tolerance):
    tolerance = {"rtol": 2e-5, **tolerance}
    got, want = jax.tree.flatten(got), jax.tree.flatten(want)
    assert got[1] == want[1]
    for g, w in zip(got[0], want[0], strict=True):
        assert g.dtype == w.dtype
        scale = 1 + np.max(np.abs(w), initial=0)
        np.testing.assert_allclose(g, w, **{"atol": 1e-5 * scale, **tolerance})


@jax.custom_jvp
def cubed(x):
    return x * x * x


cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3 * primals[0] ** 2 * tangents[0]))


@jax.custom_vjp
def wave(x):
    return jnp.sin(x)


wave.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda c, ct: (ct * c,))


@jax.jit
def jitted(x):
    return jnp.tanh(jnp.sin(x))


def bounded(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1]


def layers(x):
    """A scan whose body reads elements, the carry and a constant."""
    def body(c, w):
        h = jnp.sin(w * c)
        return jnp.tanh(W @ h) + c, h

    last, each = lax.scan(body, x, jnp.stack([x, x * x, -x]))
    return last + jnp.sum(each, 0)


def chosen(x):
    return lax.switch(jnp.int32(x[0] < 5), [jnp.cos, lambda x: jnp.sin(W @ jnp.sin(x))], x)


INNER = jax.checkpoint(lambda x: jnp.cos(jnp.sin(x)) * x)
FUNCTIONS = {
    "elementwise": lambda x: jnp.sin(jnp.sin(x) * x),
    "matmul": lambda x: jnp.tanh(W @ jnp.sin(W @ x)),
    "jit": lambda x: jitted(jitted(x) * x),
    "custom_jvp": lambda x: jnp.sin(cubed(jnp.sin(x))),
    "nested": lambda x: jnp.sin(INNER(INNER(x))),
    "reduction": lambda x: jax.nn.softmax(jnp.exp(x) * x) * jnp.sum(x),
    "scan": layers,
    "switch": chosen,
    "constant": lambda x: jnp.ones(4, np.float32),
    "identity": lambda x: x,
    "indexing": lambda x: jnp.sort(jnp.sin(x[np.array([2, 0, 1, 1])]) * x),
}
POLICIES = {
    "none": None, **{name: getattr(jax.checkpoint_policies, name) for name in (
        "everything_saveable", "dots_saveable")}}


def total(f):
    return lambda x: jnp.sum(f(x) * np.arange(1, 5, dtype=np.float32))


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: jax.grad(total(f)),
    "grad of grad": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(total(f))(x) ** 2)),
    "third order": lambda f: jax.grad(lambda x: jnp.sum(
        jax.grad(lambda y: jnp.sum(jnp.sin(jax.grad(total(f))(y))))(x) ** 2)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x * x,)),
    "jacfwd": jax.jacfwd,
    "jacrev": jax.jacrev,
    "hessian": lambda f: jax.hessian(total(f)),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x * x),
    "vmap": lambda f: lambda x: jax.vmap(f, 1)(jnp.stack([x, x * x, -x], 1)),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(total(f)))(jnp.stack([x, x * x])),
    "grad of vmap": lambda f: jax.grad(
        lambda x: jnp.sum(jax.vmap(f)(jnp.stack([x, x * x])) ** 2)),
}


CASES = [(policy, transform) for transform in TRANSFORMS for policy in POLICIES
         if policy == "none" or transform in ("grad", "third order", "grad of vmap")]


@pytest.mark.parametrize(("policy", "transform"), CASES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_as_without(name, transform, policy):
    f = FUNCTIONS[name]
    want = TRANSFORMS[transform](f)(X)
    got = jax.jit(TRANSFORMS[transform](jax.checkpoint(f, policy=POLICIES[policy])))(X)
    close(got, want)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_eager_as_compiled(transform):
    f = jax.checkpoint(FUNCTIONS["nested"])
    close(TRANSFORMS[transform](f)(X), TRANSFORMS[transform](FUNCTIONS["nested"])(X))


def test_custom_vjp_inside_and_around():
    f = jax.checkpoint(lambda x: jnp.sin(wave(jnp.sin(x))))
    close(jax.grad(total(f))(X), jax.grad(total(lambda x: jnp.sin(jnp.sin(jnp.sin(x)))))(X))

    @jax.custom_vjp
    def around(x):
        return f(x)

    around.defvjp(lambda x: (f(x), x), lambda x, ct: (jax.vjp(f, x)[1](ct)[0] * 2,))
    close(jax.grad(total(around))(X), 2 * jax.grad(total(f))(X))


def test_loop_forward():
    f = jax.checkpoint(bounded)
    close(jax.jvp(f, (X,), (X,)), jax.jvp(bounded, (X,), (X,)))
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(total(f))(X)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    with jax.enable_x64(dtype in ("float64", "complex128")):
        x = jnp.asarray(X, dtype)

        def f(x):
            return jnp.sin(jnp.sin(x) * x)

        def loss(f):
            return lambda x: jnp.sum(jnp.real(f(x)))

        tolerance = 3e-2 if dtype in ("bfloat16", "float16") else 1e-5
        close(jax.grad(loss(jax.checkpoint(f)))(x), jax.grad(loss(f))(x), rtol=tolerance,
              atol=tolerance)


def test_arguments_that_have_no_derivative():
    @jax.checkpoint
    def f(x, i, key, empty):
        noise = jax.random.normal(key, x.shape)
        return jnp.sum(jnp.sin(jnp.sin(x) * noise)[i]) + jnp.sum(empty), i + 1

    args = X, jnp.array([0, 2]), jax.random.key(3), np.zeros((0, 2), np.float32)
    g, i = jax.jit(jax.grad(f, has_aux=True))(*args)
    close((g, i), jax.grad(f.__wrapped__, has_aux=True)(*args))
    close(jax.grad(f, 3, has_aux=True)(*args)[0], args[3])


def test_pytrees_keywords_and_weak_types():
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def f(params, *, scale, extra=None):
        return {"out": (jnp.sin(params["w"] @ params["b"]) * scale, 2.0)}

    params = {"w": W, "b": X}
    out = f(params, scale=3.0)
    close(out, f.__wrapped__(params, scale=3.0) | {"out": (out["out"][0], out["out"][1])})
    assert out["out"][1].weak_type
    grads = jax.grad(lambda p, s: jnp.sum(f(p, scale=s)["out"][0]), (0, 1))(params, 2.0)
    close(grads, jax.grad(
        lambda p, s: jnp.sum(f.__wrapped__(p, scale=s)["out"][0]), (0, 1))(params, 2.0))


def test_closes_over_tracers_of_all_kinds():
    def f(x, y):
        return jnp.sum(jax.checkpoint(lambda a: jnp.sin(a * y) * y)(x))

    def plain(x, y):
        return jnp.sum(jnp.sin(x * y) * y)

    for transform in (lambda f: jax.grad(f, (0, 1)), lambda f: jax.hessian(f, (0, 1)),
                      lambda f: jax.jit(jax.grad(f, 1)),
                      lambda f: lambda x, y: jax.vmap(jax.grad(f, 1), (None, 0))(x, y)):
        close(transform(f)(X, X * X), transform(plain)(X, X * X), rtol=1e-4)


def test_method_and_name():
    class Layer:
        scale = 2.0

        @jax.checkpoint
        def __call__(self_scale, x=None):
            """Double."""
            return self_scale * 2

        def apply(self, x):
            return jax.remat(self.body)(x)

        def body(self, x):
            return jnp.sin(x) * self.scale

    layer = Layer()
    close(jax.grad(layer.apply)(1.0), jnp.cos(jnp.float32(1)) * 2)
    layer.scale = 3.0
    close(jax.grad(layer.apply)(1.0), jnp.cos(jnp.float32(1)) * 3)

    def named(x):
        return x

    assert jax.checkpoint(named).__name__ == "named"
    assert jax.checkpoint(named).__wrapped__ is named


# -- static arguments and errors -------------------------------------------------------------------


def test_static_arguments():
    class Unhashable:
        __hash__ = None
        double = False

    def f(x, n, flag=None, *, mode="sin"):
        x = x * 2 if n > 1 else x
        return getattr(jnp, mode)(x * 2 if flag is not None and flag.double else x)

    flag = Unhashable()
    g = jax.checkpoint(f, static_argnums=(1, -1), static_argnames="mode")
    close(jax.grad(g)(1.0, 3, None, mode="cos"), -2 * jnp.sin(jnp.float32(2)))
    close(jax.grad(g)(1.0, 0, flag, mode="sin"), jnp.cos(jnp.float32(1)))
    flag.double = True
    close(jax.grad(g)(1.0, 0, flag, mode="sin"), 2 * jnp.cos(jnp.float32(2)))
    by_name = jax.checkpoint(f, static_argnames=("n", "mode"))
    close(by_name(1.0, 3), by_name(1.0, n=3))


def test_static_arguments_that_are_wrong():
    with pytest.raises(ValueError, match=r"but got \(5,\), while `len\(args\)` = 2"):
        jax.checkpoint(lambda x, y: x, static_argnums=5)(1.0, 2.0)
    for wrong in ("a", [1], (1.0,), True):
        with pytest.raises(TypeError, match="must be an int or a tuple of ints"):
            jax.checkpoint(lambda x, y: x, static_argnums=wrong)


@pytest.mark.parametrize("f", [
    lambda x: x if x > 0 else -x, lambda x: float(x), lambda x: int(x)])
def test_concrete_use_of_an_argument_has_a_hint(f):
    for g in (jax.checkpoint(f), jax.grad(jax.checkpoint(f)),
              jax.checkpoint(lambda x: jax.checkpoint(f)(x))):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="static_argnums") as error:
            g(1.0)
        assert "for checkpoint / remat" in str(error.value)
        assert str(error.value).count("`jax.remat` or `jax.checkpoint`") == 1


def test_wrong_arguments():
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.checkpoint(lambda x: x)("a")
    with pytest.raises(TypeError, match=r"traced for checkpoint / remat returned a value of type "
                                        r"<class 'str'>"):
        jax.checkpoint(lambda x: "a")(1.0)
    with pytest.raises(TypeError, match="Expected a callable value"):
        jax.checkpoint(3)
    with pytest.raises(ValueError, match="prefix"):
        jax.checkpoint(lambda x, y: x, prevent_cse=(True,))(1.0, 2.0)
    with pytest.raises(TypeError, match="as a JAX value"):
        ad_checkpoint.checkpoint_name({"a": "text"}, "name")


# -- programs --------------------------------------------------------------------------------------


def test_printed():
    text = str(jax.make_jaxpr(jax.checkpoint(FUNCTIONS["identity"]))(1.0))
    assert text == """{ lambda ; a:f32[]. let
    b:f32[] = remat2[
      differentiated=False
      jaxpr={ lambda ; c:f32[]. let  in (c,) }
      policy=None
      prevent_cse=True
    ] a
  in (b,) }"""


def test_calls_of_one_signature_are_traced_once():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return jnp.sin(x)

    for _ in range(3):
        jax.checkpoint(f)(X)
    jax.make_jaxpr(lambda x: jax.checkpoint(f)(jax.checkpoint(f)(x)))(X)
    assert count == 1


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_programs_are_well_formed(transform):
    for policy in POLICIES.values():
        f = jax.checkpoint(FUNCTIONS["jit"], policy=policy)
        check_jaxpr(jax.make_jaxpr(TRANSFORMS[transform](f))(X))


def test_barriers():
    def text(f, *args):
        return jax.jit(jax.grad(f)).lower(*args).as_text()

    def f(x, y):
        return jnp.sum(jnp.sin(jnp.sin(x) * y))

    assert "optimization_barrier" not in text(jax.checkpoint(f, prevent_cse=False), X, X)
    barred = re.findall(r"optimization_barrier (.*) :", text(jax.checkpoint(f), X, X))
    assert len(barred) == 1 and barred[0].count("%arg") == 2
    some = re.findall(r"optimization_barrier (.*) :",
                      text(jax.checkpoint(f, prevent_cse=(True, False)), X, X))
    assert len(some) == 1 and some[0].count("%arg") == 1
    assert "optimization_barrier" not in jax.jit(jax.checkpoint(f)).lower(X, X).as_text()


def test_barrier_derivatives():
    def f(x):
        _, b, n = lax.optimization_barrier((x, jnp.sin(x), 3))
        return b * n

    close(jax.grad(f)(1.0), 3 * jnp.cos(jnp.float32(1)))
    close(jax.grad(jax.grad(f))(1.0), -3 * jnp.sin(jnp.float32(1)))
    key = jax.random.key(0)
    assert (jax.jit(lax.optimization_barrier)(key) == key).all()


def test_xla_does_not_look_through_barriers():
    def f(x):
        return jnp.sum(jnp.sin(jnp.sin(x @ x)) * x)

    x = np.ones((256, 256), np.float32)
    products = {prevent: jax.jit(jax.value_and_grad(jax.checkpoint(f, prevent_cse=prevent))).lower(
        x).compile().as_text().count(" dot(") for prevent in (True, False)}
    assert products == {True: 4, False: 3}


def test_barriers_in_loops_compile():
    """Small loops are compiled in a way that knows no barriers; XLA aborted the process."""
    def step(x, w):
        return lax.scan(lambda c, _: (c * 0.5 + w * jnp.cos(c), None), x, None, length=6)[0], x

    loss = lambda step: lambda x: jnp.sum(lax.scan(step, x * 9, jnp.stack([x, x]))[0])  # noqa: E731
    x = np.float32([1, 2, 3])
    np.testing.assert_allclose(jax.jit(jax.grad(loss(jax.checkpoint(step))))(x),
                               jax.jit(jax.grad(loss(step)))(x), rtol=1e-6)


# -- memory ----------------------------------------------------------------------------------------


def network(wrap, layers=12):
    @wrap
    def block(p, x):
        h = jnp.tanh(x @ p["w1"])
        return x + jax.nn.gelu(jnp.sin(h) @ p["w2"]) * jnp.cos(h)

    def loss(params, x):
        for p in params:
            x = block(p, x)
        return jnp.mean(x**2)

    w = (np.arange(64 * 64).reshape(64, 64) % 7 / 50).astype(np.float32)
    params = [{"w1": w * (i + 1) / layers, "w2": -w} for i in range(layers)]
    return jax.value_and_grad(loss), (params, np.ones((2048, 64), np.float32))


def test_memory():
    """Of the values of a block only the input is kept."""
    plain, args = network(lambda f: f)
    remat, _ = network(jax.checkpoint)
    used = {}
    results = []
    for name, f in {"plain": plain, "remat": remat}.items():
        compiled = jax.jit(f).lower(*args).compile()
        used[name] = compiled.memory_analysis().temp_size_in_bytes
        results.append(compiled(*args))
    close(*results)
    layer = args[1].nbytes
    assert used["remat"] < 0.6 * used["plain"]
    assert used["remat"] < (12 + 10) * layer


def test_blocks_are_outlined():
    def anew(f):
        return lambda *args: jax.checkpoint(lambda *xs: f(*xs))(*args)

    for wrap in (jax.checkpoint, anew):
        f, args = network(wrap)
        with configuration.outline("on"):
            text = jax.jit(f).lower(*args).as_text()
        assert max(Counter(re.findall(r"call @([a-z]+)", text)).values()) >= 12
        assert text.count("stablehlo.dot_general") < 24


def test_operations_of_libraries_that_only_python_computes():
    doubled_p = Primitive("doubled_by_numpy", shape_rule=lambda x: x,
                          impl=lambda x: jnp.asarray(2 * np.asarray(x)))
    doubled_p.define(jvp=lambda primals, tangents: (doubled_p.bind(*primals), 2 * tangents[0]))
    f = jax.checkpoint(lambda x: jnp.sin(doubled_p.bind(x)) + 1)
    x = jnp.arange(3.0)
    np.testing.assert_allclose(f(x), np.sin(2 * np.arange(3)) + 1, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), 2 * np.cos(2 * np.arange(3)),
                               rtol=1e-6)
    with pytest.raises(NotImplementedError, match="'doubled_by_numpy' not found"):
        jax.jit(f)(x)


def test_profiles_show_what_is_computed_again():
    def names(f):
        text = jax.jit(f).lower(2.0).as_text(debug_info=True)
        return {name.partition("/")[2] for name in re.findall(r'loc\("([^"]*/[^"]*)"\(', text)}

    f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    assert names(f) == {"checkpoint/sin"}
    found = names(jax.grad(f))
    assert {"transpose(jvp(checkpoint))/mul",
            "transpose(jvp(checkpoint))/rematted_computation/cos"} <= found
    assert not any("rematted" in name and "mul" in name for name in found)
    text = jax.jit(jax.grad(f)).lower(2.0).as_text(debug_info=True)
    assert "/transpose(jvp(remat2))/optimization_barrier" in text
    looped = names(jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=3)[0]))
    assert any(n.endswith("while/body/checkpoint/rematted_computation/cos") for n in looped)
