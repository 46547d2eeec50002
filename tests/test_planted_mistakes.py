"""Mistakes as people make them: the error names the operation, the argument and a cure, shows no
frame of the library, and says nothing twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, nn, random
from pyjx.core.frames import is_internal
from pyjx.example_libraries import stax
from pyjx.experimental import checkify, pallas, sparse
from pyjx.experimental.jet import jet

ROOT = Path(__file__).parents[1]
X, V, AT = jnp.ones((4, 4)), jnp.arange(4.0), jnp.arange(4)
KEY = random.key(0)
LIKE = jax.ShapeDtypeStruct((4,), np.float32)
linalg, signal, stats = jax.scipy.linalg, jax.scipy.signal, jax.scipy.stats
init, apply = stax.serial(stax.Dense(3), stax.Relu)
PARAMS = init(KEY, (-1, 8))[1]


def yielding(x: Any) -> Any:
    yield x


async def waiting(x: Any) -> Any:
    return x


def mistake(call: Callable[[], Any]) -> str:
    """The text of the error, with its notes. No frame of the library is shown."""
    with pytest.raises(Exception) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert not [f for f in frames if is_internal(f.filename)]
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


# -- words that functions take ---------------------------------------------------------------------

OPTIONS: dict[str, Callable[[str], Any]] = {
    "high hihg": lambda s: jnp.matmul(X, X, precision=s),
    "highest higest": lambda s: lax.dot(X, X, precision=s),
    "ortho otrho": lambda s: jnp.fft.fft(V, norm=s), "edge edg": lambda s: jnp.pad(V, 1, mode=s),
    "wrap wrp": lambda s: jnp.take(V, AT, mode=s),
    "clip clp": lambda s: jnp.choose(AT, [V] * 4, mode=s),
    "left lef": lambda s: jnp.searchsorted(V, V, side=s),
    "scan scann": lambda s: jnp.searchsorted(V, V, method=s),
    "linear lineer": lambda s: jnp.quantile(V, 0.5, method=s),
    "full ful": lambda s: jnp.convolve(V, V, mode=s),
    "same smae": lambda s: jnp.correlate(V, V, mode=s),
    "reduced reducd": lambda s: jnp.linalg.qr(X, mode=s),
    "fro froo": lambda s: jnp.linalg.norm(X, ord=s),
    "nuc nucc": lambda s: jnp.linalg.cond(X, p=s),
    "big bigg": lambda s: jnp.unpackbits(AT.astype("uint8"), bitorder=s),
    "sort sortt": lambda s: jnp.isin(V, V, method=s),
    "drop dropp": lambda s: V.at[AT].set(0, mode=s), "fill fil": lambda s: V.at[AT].get(mode=s),
    "SAME SAMEE": lambda s: lax.conv(X[None, None], X[None, None], (1, 1), s),
    "VALID VALLID": lambda s: lax.reduce_window(X, 0.0, lax.add, (2, 2), (1, 1), s),
    "FFT fftt": lambda s: lax.fft(V, s, (4,)),
    "cholesky cholesk": lambda s: random.multivariate_normal(KEY, V, X, method=s),
    "high highh": lambda s: random.categorical(KEY, X, mode=s),
    "threefry2x32 threefy2x32": lambda s: random.key(0, impl=s),
    "bilinear bilineer": lambda s: jax.image.resize(X, (8, 8), s),
    "qdwh qdwhh": lambda s: linalg.polar(X, method=s),
    "left leftt": lambda s: linalg.polar(X, side=s),
    "schur schurr": lambda s: linalg.solve_sylvester(X, X, X, method=s),
    "economic econommic": lambda s: linalg.qr(X, mode=s),
    "real rreal": lambda s: linalg.schur(X, output=s),
    "valid valdi": lambda s: signal.convolve2d(X, X, mode=s),
    "zeros zerros": lambda s: signal.stft(V, nperseg=2, boundary=s),
    "density densty": lambda s: signal.welch(V, nperseg=2, scaling=s),
    "constant constnt": lambda s: signal.detrend(V, type=s),
    "propagate propogate": lambda s: stats.mode(V, nan_policy=s),
    "average averge": lambda s: stats.rankdata(V, method=s),
    "scott scot": lambda s: stats.gaussian_kde(V, bw_method=s),
    "nearest neerest": lambda s: jax.scipy.ndimage.map_coordinates(X, [V, V], 1, mode=s),
    "cudnn cudn": lambda s: nn.dot_product_attention(*[jnp.ones((1, 2, 1, 4))] * 3,
                                                     implementation=s),
    "fan_in fan_inn": lambda s: nn.initializers.variance_scaling(1.0, s, "normal")(KEY, (2, 2)),
    "normal normall": lambda s: nn.initializers.variance_scaling(1.0, "fan_in", s)(KEY, (2, 2)),
    "strict strct": lambda s: jax.numpy_dtype_promotion(s).__enter__(),
    "cpu cpuu": lambda s: jax.devices(s), "float32 flot32": lambda s: jnp.zeros(3, s),
    "batch bach": lambda s: jax.vmap(lambda x: lax.psum(x, s), axis_name="batch")(V),
}


@pytest.mark.parametrize("words", OPTIONS)
def test_a_misspelt_option_is_told_the_word_that_is_meant(words: str) -> None:
    meant, given = words.split()
    said = mistake(lambda: OPTIONS[words](given))
    assert f"Did you mean '{meant}'?" in said or f'Did you mean one of: "{meant}"' in said


def test_a_word_that_is_far_from_all_is_told_no_other() -> None:
    assert "Did you mean" not in mistake(lambda: jnp.pad(V, 1, mode="something"))
    assert "Did you mean" not in mistake(lambda: jnp.einsum("abc,abd->abcd", X, X))
    assert "Did you mean" not in mistake(lambda: lax.with_sharding_constraint(V, jax.P("x")))
    if not any(d.platform == "tpu" for d in jax.devices()):
        assert "Did you mean" not in mistake(lambda: jax.devices("tpu"))


# -- what functions return -------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda f: jax.grad(f)(1.0), "value_and_grad": lambda f: jax.value_and_grad(f)(1.0),
    "vjp": lambda f: jax.vjp(f, 1.0), "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: jax.linearize(f, 1.0), "jacfwd": lambda f: jax.jacfwd(f)(V),
    "jacrev": lambda f: jax.jacrev(f)(V), "hessian": lambda f: jax.hessian(f)(V),
    "jit": lambda f: jax.jit(f)(1.0), "checkpoint": lambda f: jax.checkpoint(f)(1.0),
    "vmap": lambda f: jax.vmap(f)(V), "eval_shape": lambda f: jax.eval_shape(f, 1.0),
    "cond": lambda f: lax.cond(True, f, f, 1.0), "map": lambda f: lax.map(f, V),
    "while_loop": lambda f: lax.while_loop(f, f, 1.0),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, V),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), 1.0),
    "linear_transpose": lambda f: jax.linear_transpose(f, 1.0)(1.0),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("result", ["a", {"k": {1, 2}}])
def test_what_is_no_array_is_a_result_and_no_argument(name: str, result: Any) -> None:
    said = mistake(lambda: TRANSFORMS[name](lambda x: result))
    assert "is not a valid JAX type. " in said and "returned" in said
    assert "Argument" not in said and "closure" not in said
    assert Path(__file__).name in said
    if isinstance(result, dict):
        assert "output component" in said and "['k']" in said


@pytest.mark.parametrize("call", [
    lambda f: jax.grad(f, has_aux=True)(1.0), lambda f: jax.vjp(f, 1.0, has_aux=True),
    lambda f: jax.jvp(f, (1.0,), (1.0,), has_aux=True), lambda f: jax.jacfwd(f, has_aux=True)(1.0),
    lambda f: jax.linearize(f, 1.0, has_aux=True), lambda f: jax.hessian(f, has_aux=True)(1.0)])
def test_who_has_auxiliary_data_returns_a_pair(call: Any) -> None:
    said = mistake(lambda: call(lambda x: x * 2))
    assert "a two-element tuple, but got type float32[]. With has_aux=True, <lambda> at " in said
    assert "Tracer" not in said


def mapped_by(rule: Callable[..., Any]) -> Callable[[], Any]:
    f = jax.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(rule)
    return lambda: jax.vmap(f)(V)


@pytest.mark.parametrize(("call", "got"), [
    (mapped_by(lambda size, batched, x: None), "got None."),
    (mapped_by(lambda size, batched, x: x), "got float32[4]."),
    (mapped_by(lambda size, batched, x: (x, True, 3)), "got (float32[4], True, 3)."),
    (lambda: jax.custom_gradient(lambda x: None)(1.0), "got None."),
    (lambda: jax.custom_gradient(lambda x: x)(1.0), "got 1.0."),
    (lambda: jax.grad(jax.custom_gradient(lambda x: x))(1.0), "got float32[]."),
    (lambda: jax.custom_gradient(lambda x: (x, 3.0))(1.0), "got (1.0, 3.0)."),
    (lambda: jax.custom_gradient(lambda x: (x, lambda g: g, 3))(1.0), ", 3)."),
])
def test_rules_that_give_no_pair_say_what_it_is_of(call: Any, got: str) -> None:
    said = mistake(call)
    assert re.search(r"custom_\w+: .*<lambda> at \S+:\d+ must return a pair of", said)
    assert got in said


def test_rules_that_give_no_arrays_are_named() -> None:
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, {"r": "a"}), lambda r, g: (g,))
    assert re.search(r"the fwd rule <lambda> at .* returned a value of type <class 'str'> at "
                     r"output component \['r'\]", mistake(lambda: jax.grad(f)(1.0)))
    said = mistake(mapped_by(lambda size, batched, x: ("a", True)))
    assert "the rule <lambda> at" in said and "of custom_vmap returned a value of type" in said


@pytest.mark.parametrize(("result", "words"), [
    (np.zeros(3, np.float32), "Expected: (4,), Actual: (3,)."),
    (np.zeros(4, np.int32), "Expected: float32, Actual: int32."),
    ((V, V), "Expected: 1, Actual: 2."),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_callback_that_gives_other_types_is_told_once(result: Any, words: str, wrap: Any) -> None:
    said = mistake(lambda: wrap(lambda x: jax.pure_callback(lambda x: result, LIKE, x))(V))
    assert said.count(words) == 1 and said.count("callback <lambda>") == 1
    assert len(re.findall(r"\(3,\)", said)) <= 1


def with_jvp(rule: Callable[..., Any]) -> Any:
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return lambda: jax.jvp(f, (1.0,), (1.0,))


def with_vjp(fwd: Callable[..., Any], bwd: Callable[..., Any]) -> Any:
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    return lambda: jax.grad(f)(1.0)


def with_fixed(make: Any, *rules: Callable[..., Any]) -> Any:
    """A call of a function whose first argument is not differentiated."""
    f = make(lambda n, x: x, nondiff_argnums=(0,))
    (f.defvjp if make is jax.custom_vjp else f.defjvp)(*rules)
    return lambda: jax.grad(lambda x: f(3, x))(1.0)


@pytest.mark.parametrize(("call", "place"), [
    (with_jvp(lambda p, t: ("a", t[0])), "the rule <lambda> at "),
    (with_jvp(lambda p, t: (p[0], "a")), "the rule <lambda> at "),
    (with_vjp(lambda x: (x, None), lambda r, g: ("a",)), "the bwd rule <lambda> at "),
])
def test_results_of_rules_are_no_arguments(call: Any, place: str) -> None:
    said = mistake(call)
    assert said.startswith(place) and "returned a value of type <class 'str'>" in said
    assert "Argument" not in said


CALLED: dict[str, Callable[[], Any]] = {
    "rule(primals, tangents)": with_jvp(lambda p: p), "fwd(x)": with_vjp(lambda: 1, print),
    "bwd(n, residuals, cotangent)": with_fixed(
        jax.custom_vjp, lambda n, x: (x, None), lambda r, g: (g,)),
    "rule(n, primals, tangents)": with_fixed(jax.custom_jvp, lambda p, t: (p, t)),
    "bwd(residuals, cotangent)": with_vjp(lambda x: (x, None), lambda g: (g,)),
    "rule(axis_size, in_batched, *args)": mapped_by(lambda x: x),
    "vjp(cotangent)": lambda: jax.grad(jax.custom_gradient(lambda x: (x, lambda g, h: g)))(1.0),
    "f(carry, x)": lambda: lax.scan(lambda c: c, 0.0, V),
    "f(x)": lambda: lax.map(lambda a, b: a, V),
    "body_fun(i, value)": lambda: lax.fori_loop(0, 3, lambda c: c, V),
    "cond_fun(value) and body_fun(value)": lambda: lax.while_loop(lambda a, b: a, abs, V),
    "fn(a, b)": lambda: lax.associative_scan(lambda a: a, V),
    "branch(*operands)": lambda: lax.cond(True, lambda: 1.0, lambda x: x, 1.0),
    "computation(a, b)": lambda: lax.reduce(V, 0.0, lambda a: a, (0,)),
    "function(total, leaf)": lambda: jax.tree.reduce(lambda a: a, [1, 2]),
    "f(path, leaf)": lambda: jax.tree.map_with_path(lambda p: p, [1]),
    "matvec(x) and solve(matvec, b)": lambda: lax.custom_linear_solve(abs, V, lambda a: a),
    "f(x), solve(f, initial_guess) and tangent_solve(g, y)": lambda: lax.custom_root(
        lambda x: x, 1.0, lambda x: x, lambda g, y: y),
    "kernel(*in_refs, *out_refs, *scratch_refs), each in the tree of its specs":
        lambda: pallas.pallas_call(lambda x: None, V, interpret=True)(V),
    "index_map(*indices_in_the_grid, *prefetched_refs)": lambda: pallas.pallas_call(
        lambda x, y: None, V, grid=(2,), interpret=True,
        in_specs=[pallas.BlockSpec((2,), lambda: 0)])(V),
    "f(*leaves) and is_leaf(node)": lambda: jax.tree.map(lambda a, b: a, [1]),
    "is_leaf(node)": lambda: jax.tree.leaves([1], is_leaf=lambda: True),
}


@pytest.mark.parametrize("words", CALLED)
def test_a_function_with_other_parameters_is_told_how_it_is_called(words: str) -> None:
    assert f"It is called as {words}." in mistake(CALLED[words])


def test_a_call_within_a_body_is_not_the_bodys() -> None:
    def body(carry: Any, x: Any) -> Any:
        return (lambda a: a)(), x

    with pytest.raises(TypeError) as caught:
        lax.scan(body, 0.0, V)
    assert "It is called as" not in str(caught.value)


@pytest.mark.parametrize("call", [
    lambda: jax.custom_jvp(3), lambda: jax.custom_vjp(3), lambda: jax.custom_gradient(3),
    lambda: jax.custom_jvp(abs).defjvp(3), lambda: jax.custom_vjp(abs).defvjp(abs, 3),
    lambda: jax.custom_batching.custom_vmap(abs).def_vmap(3),
    lambda: jax.custom_batching.custom_vmap(3)])
def test_what_is_no_function_is_refused_at_once(call: Any) -> None:
    assert "Expected a callable value, got 3" in mistake(call)


# -- arguments -------------------------------------------------------------------------------------


def with_rules() -> Any:
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, g: (g,))
    return f


def twice(x: Any, n: int) -> Any:
    return x * n


def bucketed(policy: Any) -> Any:
    return jax.jit(lambda x: x.sum(), dynamic={"x": ("n",)}, dynamic_policy=policy)(V)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.concatenate(V, V), "The arrays are one sequence, as in concatenate((a, b))."),
    (lambda: jnp.stack(V, V), "The arrays are one sequence, as in stack((a, b))."),
    (lambda: jnp.concatenate((1.0, 2.0)), "Join them along a new axis, as in stack((a, b))."),
    (lambda: jnp.reshape(X, 2, 8), "give the shape as one tuple: (2, 8)."),
    (lambda: jnp.reshape(V, 4, 1), "give the shape as one tuple: (4, 1)."),
    (lambda: jax.jit(lambda n: jax.jit(twice, static_argnums=1)(V, n))(3),
     "hash a traced value, JitTracer(~int32[])."),
    (lambda: jax.jit(lambda n: jax.jit(twice, static_argnames="n")(V, n=n))(3),
     "It is traced by a function around this call: let it be static there, too"),
    (lambda: jax.jit(twice, static_argnames="m"), "It takes ['x', 'n']."),
    (lambda: jnp.argmax(X, axis=(0, 1)), "axis must be an integer, got (0, 1)"),
    (lambda: jnp.cross(V, V), "The call was cross(float32[4], float32[4])."),
    (lambda: jnp.tril(3.0), "The call was tril(3.0)."),
    (lambda: jnp.diag(jnp.ones((2, 2, 2))), "The call was diag("),
    (lambda: jax.scipy.interpolate.RegularGridInterpolator((V,), X[:2]),
     "The call was RegularGridInterpolator(points=(float32[4],), values=float32[2,4])."),
    (lambda: signal.convolve(X, V), "same dimensionality, got shapes (4, 4) and (4,)"),
    (lambda: jax.tree.unflatten([1], jax.tree.structure([1])), "takes the structure first"),
    (lambda: jax.tree.leaves([1], is_leaf=3), "is_leaf must be a function or None, got 3"),
    (lambda: jax.tree_util.register_pytree_node_class(type("Bad", (), {})),
     "has a class method tree_unflatten(cls, aux, children)"),
    (lambda: jax.devices(3), "backend must be the name of a platform, such as 'cpu', got 3"),
    (lambda: jax.debug.print(V), "fmt must be a string, as in print('{}', x), got Array("),
    (lambda: jnp.fft.fft(V, n=2.5), "fft: n must be an integer, got 2.5"),
    (lambda: jnp.fft.irfft(V, n=-1), "Shape should be positive, got [-1]."),
    (lambda: jax.config.jax_enable_x46, "Did you mean 'jax_enable_x64'?"),
    (lambda: lax.conv(jnp.ones((1, 3, 4, 4)), jnp.ones((4, 2, 3, 3)), (1, 1), "SAME"),
     "axis 1 of the kernel, of shape (4, 2, 3, 3); the dimension_numbers of conv_general_dilated "
     "name them."),
    (lambda: jnp.cat([V, V]), "Use jax.numpy.concatenate."),
    (lambda: jax.jit(lambda x: x.detach())(V), "Use jax.lax.stop_gradient(x)."),
    (lambda: jax.named_call(3), "named_call: fun must be a function, got 3"),
    (lambda: jax.jvp(with_rules(), (1.0,), (1.0,)), "a custom_jvp rule has both modes"),
    (lambda: jax.ffi.ffi_call("nope", LIKE)(V), "jax.ffi.register_ffi_target('nope', ...)"),
    (lambda: pallas.pallas_call(lambda x, o: None, out_shape=LIKE)(V), "Only interpret mode is"),
    (lambda: pallas.program_id(0), "Call it in the kernel of a pallas_call."),
])
def test_mistakes_of_arguments(call: Any, words: str) -> None:
    assert words in mistake(call)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.trace(X, offset=1.5), "trace: offset must be a scalar integer"),
    (lambda: jnp.diagonal(X, offset=1.5), "diagonal: offset must be an integer, got 1.5"),
    (lambda: jnp.diagonal(X, 0, "x"), "diagonal: axis1 must be an integer, got 'x'"),
    (lambda: jnp.diagflat(V, 1.5), "diagflat: k must be an integer, got 1.5 ("),
    (lambda: jnp.tile(X, 1.5), "tile: reps must be an integer or a sequence of integers, got 1.5"),
    (lambda: jax.jit(lambda x: jnp.tile(x, 1.5))(X), "tile: reps must be an integer or a sequence"),
    (lambda: jnp.repeat(X, 1.5), "as an integer (repeats is 1.5)"),
    (lambda: jnp.linalg.matrix_power(X, 1.5), "matrix_power: n must be an integer, got 1.5 ("),
    (lambda: jnp.histogram2d(V, V, 1.5), "histogram2d: bins must be an integer, got 1.5"),
    (lambda: jnp.cov(X, fweights="x"), "'str'> at position 1. That is the argument fweights."),
    (lambda: jnp.array_str(X, max_line_width="x"), "max_line_width must be an integer or None"),
    (lambda: nn.initializers.uniform("x")(KEY, (2,)), "uniform: scale must be an array, got 'x'"),
    (lambda: X.transpose("x"), "(args is ('x',))"),
    (lambda: X.reshape(1.5), "The call was Array.reshape(1.5)."),
    (lambda: jnp.unwrap(V, jnp.ones(2)), "unwrap got incompatible shapes for broadcasting: (3,)"),
    (lambda: lax.cond(lambda: True, abs, abs, 1), "Call it, as in cond(f(x), ...)."),
    (lambda: jax.inspect.record("x.npz", abs, 1.0, way="x"), "inspect.record: 'x' is neither"),
    (lambda: jnp.trim_zeros(V, 1), "trim_zeros: trim must be a string, got 1 ("),
    (lambda: jnp.empty(3, dtype={"k": 1}), "Cannot interpret {'k': 1} as a data type in empty"),
    (lambda: jax.vmap(lambda x: x, axis_name=["a"])(V), "vmap: unhashable type: 'list' (axis_n"),
    (lambda: jax.vjp(twice, X, 2, saveable_args="x"), "saveable_args must be a tree of bools"),
    (lambda: jax.make_user_context([]), "unhashable type: 'list' (default_value is [])"),
    (lambda: jnp.histogram_bin_edges(V, "auto"), "bins must be a number of bins, or their edges"),
    (lambda: jnp.polyder(X), "polyder: p must be one polynomial's coefficients, an array of rank"),
    (lambda: jax.inspect.find(twice, V, 2, wht="inf"), "'wht'. Together they have ['what', 'x',"),
    (lambda: jax.inspect.find(twice, V, 2, wht="inf"), "Did you mean 'what'?"),
    (lambda: jax.inspect.find(jnp.sin, V, what=["nan"]), "what must be one of ['nan', 'inf',"),
    (lambda: jax.inspect.find(jnp.sin, V, what="subnormall"), "Did you mean 'subnormal'?"),
    (lambda: jax.inspect.compare(jnp.sin, V, b=3), "inspect.compare: b must be 'compiled', 'eager"),
    (lambda: jax.inspect.compare(jnp.sin, V, b="compield"), "Did you mean 'compiled'?"),
    (lambda: jax.inspect.record("x.npz", twice, V, 2, wayy="eager"), "Did you mean 'way'?"),
    (lambda: jax.inspect.check(jax.inspect.trace(twice, V, 2), "interpretr"),
     "check: how must be one of ['interpreter', 'eager', 'numpy-float64'], got 'interpretr'. Did"),
    (lambda: jax.inspect.compare(twice, V, 2, c="eager"), "unexpected keyword argument 'c'"),
    (lambda: lax.polynomial(V, [1.0, 2.0], unroll="x"), "polynomial: unroll must be an integer"),
    (lambda: lax.sort(V, is_stable="no"), "sort: is_stable must be True or False, got 'no'"),
    (lambda: lax.top_k(V, 1, is_stable=abs), "top_k: is_stable must be True or False, got"),
    (lambda: lax.approx_max_k(V, 1, aggregate_to_topk="no"), "aggregate_to_topk must be True or"),
    (lambda: jax.ops.segment_sum(V, AT, indices_are_sorted="x"),
     "segment_sum: indices_are_sorted must be True or"),
    (lambda: V.at[AT].add(V, unique_indices="no"), "unique_indices must be True or False, got 'n"),
    (lambda: jax.jit(lambda x: jnp.arange(0.5, x.shape[0]), dynamic={"x": ("n",)})(V),
     "start and stop of a range between symbolic dimensions must be integers, got 0.5 and n"),
    (lambda: jax.jit(lambda x: jnp.arange(x.shape[0] / 2), dynamic={"x": ("n",)})(V),
     "It arose in the jnp.arange argument 'stop'. Compute with sizes by jax.numpy, such as"),
    (lambda: bucketed(lambda: 8), "dynamic_policy must be a function of a size alone"),
    (lambda: bucketed(len), "got <built-in function len>, which does not take the size 4"),
    (lambda: bucketed(lambda n: 8.0), "gives 8.0 for the size 4 of the dimension 'n'. Give a numb"),
    (lambda: bucketed(lambda n: [] + n), "can only concatenate list"),
])
def test_what_inner_functions_and_python_refuse_is_told_of_the_argument(
        call: Any, words: str) -> None:
    assert words in mistake(call)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.pad(V, 1, constant_value=3), "Did you mean 'constant_values'?"),
    (lambda: jnp.pad(V, 1, mode="reflect", reflect_typ="odd"), "Did you mean 'reflect_type'?"),
    (lambda: jax.scipy.optimize.minimize(jnp.sum, V, method="BFGS", options={"maxitre": 3}),
     "Did you mean 'maxiter'?"),
    (lambda: jax.jit(lambda x: x.at[x < 0].set(0.0))(X), "or jnp.where(mask, value, x) to assign"),
    (lambda: jax.jit(lambda x: V[int(x[0, 0])])(X), "show it by jax.debug.print, or return it. If"),
    (lambda: jax.jit(lambda x: x.item())(1.0), "\nLeave it out, or convert what the traced fun"),
    (lambda: jnp.add(X, X, out=X), "arrays do not change: x = jnp.add(...) names the new one"),
    (lambda: jnp.asarray(X) + {"a": 1}, "; jax.tree.map(lambda y: x + y, y) computes with ea"),
    (lambda: jnp.divide(x1=X, x2=X), "'x1'. The arguments are x, y."),
    (lambda: jnp.maximum(X, axis=0), "The arguments are x, y, out, where."),
    (lambda: jax.jit(jnp.sum, out_shardings=(None, None))(X), "    <class 'jax.Array'>."),
    (lambda: jnp.unravel_index(5, "x"), "'str'> at position 1. That is the argument shape."),
    (lambda: jnp.min(V, where="x", initial=0), "'str'> at position 2. That is the argument where."),
    (lambda: jnp.std(V, where="x", axis=0), "'str'> at position 2. That is the argument where."),
    (lambda: jnp.histogram(V, range="ab"), "'str'> at position 1. That is the argument range."),
    (lambda: jax.tree.reduce(lambda a, b: a, []), "has no leaves. Give tree_reduce an initializer"),
    (lambda: jax.vmap(jax.custom_batching.custom_vmap(abs))(V), "custom_vmap function abs using d"),
    (lambda: lax.conv_general_dilated(X[None, None], X[None, None], (1, 1), "SAME",
                                      rhs_dilation=(2,)), "window and rhs_dilation must have"),
    (lambda: jnp.promote_types("x", int), "promote_types: data type 'x' not understood (a is 'x')"),
    (lambda: jnp.nonzero(V, size=2, fill_value="x"), "(fill_value is 'x')"),
    (lambda: jnp.where(V > 1, size=2, fill_value="x"), "where: fill_value must be an array or No"),
    (lambda: jnp.trapezoid(V, dx="x"), "(dx is 'x')"),
    (lambda: jax.make_mesh((1,), ("x", "y")), "first argument (`axis_sizes`, (1,)) to equal"),
    (lambda: jnp.einsum("ij->i"), "operand is missing for each term of 'ij->i'"),
    (lambda: jax.jit(lambda x: x)(V, wat="x"), "got an unexpected keyword argument 'wat'"),
    (lambda: jax.jit(lambda x: x)(V, "x"), "takes 1 positional argument but 2 were given"),
    (lambda: jnp.max(V, initial="x"), "max: initial must be an array or None, got 'x' ("),
    (lambda: jnp.isclose(V, V, rtol="x"), "isclose: rtol must be an array, got 'x' ("),
    (lambda: jnp.nan_to_num(V, nan="x"), "nan_to_num: nan must be an array, got 'x' ("),
    (lambda: jnp.bincount(AT, weights="x"), "bincount: weights must be an array or None, got"),
    (lambda: jnp.linalg.pinv(X, rtol="x"), "(rtol is 'x')"),
    (lambda: jax.tree_util.register_pytree_node_class(3), "(cls, aux, children) (cls is 3)"),
    (lambda: nn.dot_product_attention(*[jnp.ones((1, 4, 1, 2))] * 3, local_window_size="x"),
     "(local_window_size is 'x')"),
    (lambda: stats.norm.pdff, "'pyjx.scipy.stats.norm' has no attribute 'pdff'"),
    (lambda: linalg.cho_solve((V, True), V), "cho_solve: the factor must be a matrix"),
    (lambda: pallas.pallas_call(abs, LIKE, grid="x", interpret=True)(V), "grid must be an integer"),
    (lambda: jax.jit(abs, device="foo"), "jit: device must be a jax.Device"),
    (lambda: jnp.linalg.multi_dot(3), "multi_dot: arrays must be a sequence of arrays"),
    (lambda: jet(jnp.sin, (1.0,), (1.0,)), "series[0] must be a list of terms, such as [1.0]"),
    (lambda: jax.grad(jax.checkpoint(jnp.sin, policy=lambda prim: True))(1.0),
     "It is called as policy(prim, *avals, **params)."),
    (lambda: jax.tree.map(abs, [1], is_leaf="x"), "is_leaf must be a function or None, got 'x'"),
    (lambda: jax.tree.leaves([1], is_leaf=[]), "is_leaf must be a function or None, got []"),
    (lambda: jax.tree.map(abs, {"a": 1}, is_leaf={}), "is_leaf must be a function or None, got {}"),
    (lambda: jax.P(V), "PartitionSpec: each entry must be the name of a mesh axis, a tuple of"),
    (lambda: jax.P(("x", V)), "PartitionSpec: each entry must be the name of a mesh axis, a tuple"),
    (lambda: jax.pmap(abs, axis_name=["a"]), "pmap: axis_name must be one name that can be hashed"),
    (lambda: jax.empty_ref(LIKE, memory_space="x"), "empty_ref: memory_space must be a memory spa"),
    (lambda: jax.new_ref(V, memory_space=3), "new_ref: memory_space must be a memory space, such"),
    (lambda: jax.empty_ref(LIKE, pin="x"), "empty_ref: pin must be True or False, got 'x'"),
    (lambda: jax.empty_ref(LIKE, pin=True), "pinned array ref only works inside of a `jit`"),
    (lambda: jax.jacfwd(lambda x: x > 1)(V), "jacfwd: the function returns values of dtype bool"),
    (lambda: jax.jit(lambda x: jnp.arange(2.5, x.shape[0]), dynamic={"x": ("n",)})(V),
     "Add the start to as many numbers: 2.5 + jnp.arange(n - 2)."),
    (lambda: jax.checkpoint_policies.save_from_both_policies(3, 4), "policy must be a function"),
    (lambda: lax.fori_loop(0, AT, lambda i, c: c, 0.0), "fori_loop: upper must be a scalar"),
    (lambda: jax.ops.segment_sum(V, AT[:3], 3), "segment_sum: segment_ids must have the number of "
     "each row of data, along its first axis; got data float32[4] and segment_ids int32[3]"),
    (lambda: jax.ops.segment_max(V, AT.reshape(2, 2)), "segment_max: segment_ids must have the nu"),
    (lambda: jax.ops.segment_prod(V, V, 4), "segment_prod: segment_ids must be integers, got f"),
    (lambda: jax.vmap(lambda x: (x, {"a": x.sum()}), out_axes=(0, 1))(X), "the output[1]['a'] has"),
    (lambda: jax.inspect.find(V), "inspect.find: fun must be a function, got Array"),
    (lambda: jax.viewer.show(V), "show: fun must be a function, got Array"),
    (lambda: jax.jit(jax.debug.bounds_check(lambda x: x[5]))(V), "that is compiled. Check the "
     "compiled one: jax.debug.bounds_check(jax.jit(f)), in this order"),
    (lambda: V.view((2, 2)), "A shape is for x.reshape((2, 2))"),
    (lambda: apply(PARAMS, jnp.ones((2, 7))), "apply: dot_general requires contracting dimensions"),
    (lambda: apply(PARAMS, jnp.ones((2, 7))), "The call was apply(params=[("),
    (lambda: init(KEY, 3), "init: 'int' object is not subscriptable (input_shape is 3)"),
    *[(lambda f=f: f(waiting), "got an async function") for f in (jax.jit, jax.grad, jax.vmap)],
    *[(lambda f=f: f(yielding), f" at {__file__}:{yielding.__code__.co_firstlineno}. What is traced"
       " is run once: return a list") for f in (jax.jit, jax.grad, jax.vmap)],
    *[(lambda f=f: f(["a"]), "A policy takes names as strings, as in save_only_these_names('a', '")
      for f in (jax.checkpoint_policies.save_only_these_names,
                jax.checkpoint_policies.save_any_names_but_these,
                jax.checkpoint_policies.save_anything_except_these_names)],
    (lambda: jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=3, names_which_can_be_offloaded=[], offload_src="device",
        offload_dst="pinned_host"), "is not iterable (names_which_can_be_saved is 3)"),
])
def test_the_argument_that_is_wrong_is_named_and_cured(call: Any, words: str) -> None:
    assert words in mistake(call)


def test_what_was_given_is_no_cure() -> None:
    devices = jax.devices()[:1]
    for call, wrong in (
            (lambda: jax.make_mesh((4,), ("x",), devices=devices), "JAX_NUM_CPU_DEVICES"),
            (lambda: jax.device_put(V, "foo"), "jax.devices"),
            (lambda: lax.platform_dependent(V, cpux=abs), "Did you mean")):
        assert wrong not in mistake(call)


def test_arguments_that_are_no_arrays_have_one_cure() -> None:
    class Config:
        pass

    for value, words in (("a", "mark the argument as static"), ({1}, "the enclosing scope")):
        said = mistake(lambda value=value: jax.jit(lambda x: 1)(value))
        assert words in said and said.count("enclosing scope") <= 1
    said = mistake(lambda: jax.jit(lambda x: 1)(Config()))
    assert said.count("static_argnums") == 1 and "scope" not in said
    assert "Its class may be a pytree" in said


@pytest.mark.parametrize(("call", "words"), [
    (lambda r: r[5], "idx=5, dim=2"), (lambda r: r[0, 0], "indices=(0, 0)"),
    (lambda r: r["a"], "got 'a'"), (lambda r: r[jnp.array([0.5])], "indexed by integers"),
    (lambda r: r.__setitem__(..., "a"), "`swap` stores arrays and numbers! closure"),
    (lambda r: r.__setitem__(..., None), "`swap` stores arrays and numbers! closure"),
    (lambda r: r.__setitem__(..., [1.0]), "jnp.asarray! closure"),
    (lambda r: r.__setitem__(..., 1j), "jnp.asarray(value, ref.dtype)"),
    (lambda r: r.__setitem__(0, jnp.ones(3)), "Value shape: (3,)"),
    (lambda r: r.get(1, 2), "Ref.get() takes from 1 to 2! Transformed"),
    (lambda r: r.set(), "Ref.set() missing 1! Transformed"),
    (lambda r: r.set("a"), "`swap` stores arrays and numbers! closure"),
    (lambda r: r.swap(jnp.ones(3)), "Value shape: (3,)"),
    (lambda r: r.addupdate(jnp.ones(9), 0), "`addupdate`. Ref shape: (2,)"),
    (lambda r: r.reshape(9), "into shape (9,)"), (lambda r: r.bitcast("foo"), "bitcast")])
def test_mistakes_with_references(call: Any, words: str) -> None:
    said, (needed, *unneeded) = mistake(lambda: call(jax.new_ref(V[:2]))), words.split("! ")
    assert needed in said and not [word for word in unneeded if word in said]


def endless(x: Any) -> Any:
    return jax.jit(endless)(x - 1) * 2


@pytest.mark.parametrize("call", [
    lambda: jax.jit(endless)(3), lambda: jax.grad(endless)(3.0), lambda: jax.vmap(endless)(V),
    lambda: lax.scan(lambda c, x: (endless(c), x), 0.0, None, 3)])
def test_a_function_that_runs_in_itself_without_end_is_named(call: Any) -> None:
    said = mistake(call)
    assert "maximum recursion depth exceeded" in said and f"calling endless at {__file__}" in said
    assert int(re.findall(r", (\d+) times", said)[0]) > 20


NESTED = """
import sys
import pyjx as jax
def chain(x, n):
    return jitted(x, n - 1) + 1 if n else x
jitted = jax.jit(chain, static_argnums=1)
jitted(1.0, 40)
jitted(1.0, 80)
sys.setrecursionlimit(450)
try:
    for n in range(100, 300, 10):
        jitted(1.0, n)
except RecursionError as error:
    print(error)
"""


def test_programs_that_are_nested_too_deeply_have_a_cure() -> None:
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True)
    assert "Programs are nested too deeply in each other" in done.stdout, done


def test_leaks_are_told_in_words_of_leaks() -> None:
    kept: list[Any] = []
    with jax.checking_leaks():
        said = mistake(lambda: jax.jit(lambda x: kept.append(x * 2))(1.0))
    assert "concrete value was not available" not in said
    assert "created on line" in said and "by the operation `mul`" in said
    assert "which closes over the variable kept" in said and "return them instead" in said
    assert "<tuple" not in said


FIRST = """
import traceback, {module} as m, pyjx.numpy as jnp
from pyjx.core.frames import is_internal
def fails(*args): raise KeyError("mine")
try:
    f = {call}
    f(jnp.ones(3))
except Exception as error:
    frames = traceback.extract_tb(error.__traceback__)
    print(len(frames), [f.name for f in frames if is_internal(f.filename)])
"""


@pytest.mark.parametrize("call", [
    "m.hessian(fails)", "m.jacobian(fails)", "m.value_and_grad(fails)", "m.checkpoint(fails)",
    "m.nn.initializers.he_normal()", "m.numpy.vectorize(fails)"])
def test_functions_show_no_frames_where_they_are_used_first(call: str) -> None:
    """A function may be made by another one of the library, which has not been used by its name."""
    done = subprocess.run([sys.executable, "-c", FIRST.format(module="pyjx", call=call)], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout.endswith(" []\n"), done.stdout + done.stderr


def test_who_comes_from_other_libraries_hears_what_is_here(tmp_path: Path) -> None:
    """Python itself raises this, so that nothing is looked up for attributes that there are."""
    program = tmp_path / "program.py"
    program.write_text("import pyjx.numpy as jnp\njnp.ones(3).numpy()\n")
    done = subprocess.run([sys.executable, program], text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "has no attribute 'numpy'. Use numpy.asarray(x)." in done.stderr


# -- cures that can be taken -----------------------------------------------------------------------


class Asked:
    def __bool__(self) -> bool:
        return True


class Thing:
    pass


@dataclass
class Fields:
    x: int


def static_rule(x: Any, y: Any) -> Any:
    scaled: Any = jax.custom_vjp(lambda x, y: x * y, nondiff_argnums=(1,))
    scaled.defvjp(lambda x, y: (x * y, None), lambda y, r, g: (g * y,))
    return scaled(x, y)


def ruled(fwd: Any = None, jvp: Any = None) -> Any:
    if fwd:
        g: Any = jax.custom_vjp(lambda x: x)
        g.defvjp(fwd, lambda r, g: (g,))
        return g
    g = jax.custom_jvp(lambda x: x)
    g.defjvp(jvp)
    return g


def compiled(**options: Any) -> Any:
    return jax.jit(lambda x, n: x * n, **options).lower(V, n=2).compile()


STATIC, LOOPS, BRANCHES = "as static (static_argnums", "each iteration", "Branches are traced"
EXAMPLES, AUX, SHAPE = "in_axes be None", "has_aux=True", "values: give it to jax.eval_shape"
LAYERS = {f"l{i}": jnp.ones((64, 64)) for i in range(100)}
SPARSE = sparse.BCOO.fromdense(X)
DATES = np.array(["2020-01-01"], "datetime64[D]")

# What the message says, behind "!" what it does not, and the call.
CURES: list[tuple[str, Callable[[], Any]]] = [
    (STATIC, lambda: jax.jit(lambda x: X[int(x)])(1.0)),
    (f"NumPy's arrays! static {LOOPS}", lambda: jax.jit(lambda: float(jnp.ones(3).sum()))()),
    (f"{LOOPS}! static", lambda: lax.scan(lambda c, x: (float(c), x), 0.0, V)),
    (f"{LOOPS}! static", lambda: lax.scan(lambda c, i: (c, [1, 2][i]), 0.0, AT)),
    (f"{LOOPS}! static", lambda: lax.while_loop(lambda c: c < 3, lambda c: int(c) + 1, 0)),
    (f"{LOOPS}! static", lambda: lax.fori_loop(0, 3, lambda i, c: c + int(i), 0)),
    (f"{BRANCHES}! static", lambda: lax.cond(True, lambda x: float(x), lambda x: x, 1.0)),
    (f"{EXAMPLES}! static", lambda: jax.vmap(float)(V)),
    (f"{EXAMPLES}! (static", lambda: jax.vmap(lambda x, i: x[:i])(X, AT)),
    (f"{EXAMPLES}! static", lambda: jax.vmap(jnp.ones)(AT)),
    (f"{EXAMPLES}! static", lambda: jax.jit(jax.vmap(float))(V)),
    (f"It is y of <lambda> at {__file__}", lambda: jax.jit(jax.grad(static_rule))(1.0, 2.0)),
    ("Axis 1 of the first operand, of shape (4, 4), has size 4! dimension_numbers",
     lambda: lax.dot(X, jnp.ones((2, 4)))),
    ("register_pytree_node", lambda: jax.jit(lambda x: x)(Thing())),
    ("register_dataclass", lambda: jax.jit(lambda x: x)(Fields(1))),
    ("jnp.where(mask[..., None], x, 0)", lambda: jax.jit(lambda x, m: x[m])(X, V > 1)),
    ("jnp.where(mask[..., None], value, x)", lambda: jax.jit(
        lambda x, m: x.at[m].set(0))(X, V > 1)),
    ("jnp.where(mask, x, 0)", lambda: jax.jit(lambda x, m: x[:, m])(X, V > 1)),
    ("x.mean(where=mask[..., None])", lambda: jax.jit(lambda x, m: x[m].mean(0))(X, V > 1)),
    ("jnp.where(mask[..., None, None], x, 0)", lambda: jax.jit(
        lambda x, m: x[m])(jnp.ones((4, 2, 2)), V > 1)),
    ("jnp.where(mask, x, 0)", lambda: jax.jit(lambda x: x[x > 1])(X)),
    (f"{AUX}! static", lambda: jax.grad(lambda x: float(x) ** 2)(3.0)),
    (f"{AUX}! static", lambda: jax.jit(jax.grad(lambda x: float(x) ** 2))(3.0)),
    ("`jax.checkpoint`! jit", lambda: jax.checkpoint(lambda x: float(x))(1.0)),
    ("nse! static", lambda: jax.jit(sparse.BCOO.fromdense)(X)),
    (f"{AUX}. The function is <lambda> at {__file__}! [1.",
     lambda: jax.grad(lambda p: (p["l0"].sum(), p))(LAYERS)),
    ("stddev! scope", lambda: nn.initializers.normal(stddev="a")(KEY, (3,))),
    ("pred! pytree scope", lambda: lax.cond(Asked(), lambda: 1, lambda: 2)),
    (f"{SHAPE}! pytree static", lambda: jax.jit(lambda x: x)(LIKE)),
    (SHAPE, lambda: jnp.sin(LIKE)),
    ("datetime64[D], of shape (1,). Make it one of numbers: x.astype('int64')",
     lambda: jax.jit(lambda x: x)(DATES)),
    ("|V2, of shape (1,). Make it one of numbers: x.view(jnp.bfloat16), if such was! uint8",
     lambda: jnp.asarray(np.ones(1, jnp.bfloat16).view("V2"))),
    ("float128, of shape (). Make it one of narrower numbers: x.astype('float64')! unique",
     lambda: X + np.longdouble(2)),
    ("complex256, of shape (1,). Make it one of narrower numbers: x.astype('complex128')",
     lambda: jax.device_put(np.ones(1, np.clongdouble))),
    ("Mock! masked", lambda: jnp.sum(Mock())),
    ("Mock! masked", lambda: jax.jit(jnp.sin)(MagicMock())),
    ("dtype object, of shape (1,)", lambda: jax.jit(lambda x: x)(np.array([None]))),
    ("input is m.indices: jax.experimental.sparse.grad", lambda: jax.grad(
        lambda m: (m @ V).sum())(SPARSE)),
    ("input is y, which is 3: write 3.0", lambda: jax.hessian(lambda y: y * y)(3)),
    ("input is y['a'], of type int32[4]", lambda: jax.jacrev(lambda y: y)({"a": AT})),
    ("tree of 3 leaves: give jnp.array(xs)", lambda: lax.scan(
        lambda c, x: (c + x, x), 0.0, [1.0, 2.0, 3.0])),
    (f"shapes, float32[2,4], got float32[]. fn is <lambda> at {__file__}",
     lambda: lax.associative_scan(lambda a, b: (a + b).sum(), X)),
    (f"fn is <lambda> at {__file__}", lambda: lax.associative_scan(lambda a, b: (a, b), X)),
    ("checkify.check: the format asks for name 'y'", lambda: checkify.checkify(
        lambda x: checkify.check(x > 0, "{y}", x=x))(V[0])),
    ("static arguments n=2, called with n=5", lambda: compiled(static_argnums=1)(V, n=5)),
    ("static arguments n=2, called with n=5", lambda: compiled(static_argnames="n")(V, n=5)),
    ("strings, got 0; positions are static_argnums", lambda: jax.jit(abs, static_argnames=0)),
    (f"The rule is <lambda> at {__file__}", lambda: jax.grad(ruled(fwd=lambda x: x))(1.0)),
    (f"The rule is <lambda> at {__file__}", lambda: jax.grad(jax.jit(ruled(
        fwd=lambda x: (jnp.stack([x, x]), None))))(1.0)),
    (f"The rule is <lambda> at {__file__}", lambda: jax.jvp(ruled(jvp=lambda p, t: p), [V], [V])),
    (f"It is <lambda> at {__file__}", lambda: jax.custom_vjp(lambda x: x)(1.0)),
    (f"It is <lambda> at {__file__}", lambda: jax.custom_jvp(lambda x: x)(1.0)),
    ("{:.2f} does not show float32[4]! cannot be", lambda: jax.debug.print("{:.2f}", V)),
    ("[float32[4,4]]. Each needs its {}", lambda: jax.debug.print("x", X)),
    ("itself, as in jax.debug.callback(print, x)", lambda: jax.debug.callback(None, V)),
    ("jnp.arange(0, 5)! closure", lambda: lax.map(abs, range(5))),
    ("array of it: jnp.arange(0, 4)! closure", lambda: jax.vmap(lambda i: V[i])(range(4))),
    ("array of it: jnp.asarray(list(x))! closure", lambda: lax.map(abs, {1.0, 2.0})),
    ("jnp.arange(5), or to lax.scan None", lambda: lax.map(abs, 5)),
    ("transpose() takes from 1 to 2 positional", lambda: jnp.transpose(X, 1, 0)),
    ("jax.random.fold_in", lambda: KEY + 1), ("jnp.asarray(x, int)", lambda: V & 1),
    (f"{AUX}! static", lambda: jax.hessian(lambda x: float(x))(3.0)),
]


@pytest.mark.parametrize(("words", "call"), CURES,
                         ids=[words.partition(__file__)[0] for words, _ in CURES])
def test_cures_are_of_what_was_called(words: str, call: Callable[[], Any]) -> None:
    said, (needed, *unneeded) = mistake(call), words.split("! ")
    assert needed in said
    assert len(said) < 1500 and len({*said.split("\n")}) == said.count("\n") + 1
    assert not [word for word in " ".join(unneeded).split() if word in said]
