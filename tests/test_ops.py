"""What must hold of every operation, checked on the samples of `tests/ops`."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from lowering.rules import rules_for
from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.evaluation import bind_eqn, holds_jaxprs, walk
from pyjx.core.primitive import all_primitives
from pyjx.engine.rules import forward_rule
from tests.bad_parameters import calls_of
from tests.op_table import Sample, all_samples, families

SAMPLES = all_samples()


def _load_all() -> dict[str, Any]:
    for module in (lax, lax.linalg):
        for name in dir(module):
            getattr(module, name)
    for module in ("lax.references", "runtime.typed_shardings"):
        importlib.import_module(f"pyjx.{module}")
    return all_primitives()


PRIMITIVES = _load_all()


def over(samples: list[Sample]) -> Any:
    """Run a test for each of the samples; for the first of each family also as a smoke test
    and on a GPU."""
    wanted = {id(s) for s in samples}
    first = {next((id(s) for s in family if id(s) in wanted), None) for family in families()}
    marks = [pytest.mark.gpu, pytest.mark.smoke]
    return pytest.mark.parametrize("sample", [
        pytest.param(s, id=s.id or s.primitive, marks=marks if id(s) in first else [])
        for s in samples])


def leaves(out: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(out)]


def tolerance(dtype: Any) -> float:
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    return 50 * float(dtypes.finfo(dtype).eps)


def assert_close(got: Any, want: Any, rtol: float | None = None, atol: float | None = None,
                 same_dtype: bool = True) -> None:
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        if same_dtype:
            assert g.dtype == w.dtype
        tol = tolerance(g.dtype)
        if dtypes.issubdtype(g.dtype, np.inexact):
            wide = np.complex128 if g.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(g.astype(wide), w.astype(wide),
                                       rtol=tol if rtol is None else rtol,
                                       atol=tol if atol is None else atol)
        else:
            np.testing.assert_array_equal(g, w)


@over(SAMPLES)
def test_value(sample: Sample) -> None:
    """Eagerly and under jit, the value is that of the reference."""
    eager = sample.fun(*sample.args)
    compiled = jax.jit(sample.fun)(*sample.args)
    assert_close(compiled, eager, sample.rtol, sample.atol)
    if sample.reference is not None:
        with np.errstate(all="ignore"):
            want = sample.reference(*sample.args)
        assert_close(eager, want, sample.rtol, sample.atol, same_dtype=False)


# Neither infinity nor zero by zero, nor infinity less infinity, makes a NaN of what keeps them.
EXTREMES = np.array([np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3.0e38, 1e-40], np.float32)


def with_extremes(x: Any) -> Any:
    x = np.asarray(x)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    draw = np.random.default_rng(0).choice(EXTREMES, (*x.shape, 2))
    with np.errstate(over="ignore"):
        return (draw.view(np.complex64) if x.dtype.kind == "c" else draw)[..., 0].astype(x.dtype)


@over([s for s in SAMPLES if s.primitive in PRIMITIVES and PRIMITIVES[s.primitive].keeps_nans])
def test_a_nan_came_from_an_operand(sample: Sample) -> None:
    def has_nan(values: Any) -> bool:
        return any(bool(np.isnan(x).any()) for x in leaves(values)
                   if dtypes.issubdtype(x.dtype, np.inexact))

    def run(eqn: Any, operands: list[Any]) -> Any:
        results = bind_eqn(eqn, operands)
        fills = eqn.params.get("fill_value", 0) is None  # by NaN, where an index is out of bounds
        if eqn.primitive.keeps_nans and not fills and not holds_jaxprs(eqn):
            assert has_nan(operands) or not has_nan(results), eqn
        return results

    args = jax.tree.map(with_extremes, sample.args)
    closed = jax.make_jaxpr(sample.fun)(*args)
    walk(closed.jaxpr, closed.consts, jax.tree.leaves(args), run)


@over(SAMPLES)
def test_text(sample: Sample) -> None:
    """The primitive is in the jaxpr, which is well typed; the same program gives the same text."""
    closed = jax.make_jaxpr(sample.fun)(*sample.args)
    assert sample.primitive in _names(closed.jaxpr)
    first = jax.jit(lambda *xs: sample.fun(*xs)).lower(*sample.args).as_text()
    again = jax.jit(lambda *xs: sample.fun(*xs)).lower(*sample.args).as_text()
    assert first == again


def _names(jaxpr: Any) -> set[str]:
    from pyjx.core.jaxpr import subjaxprs

    return {e.primitive.name for e in jaxpr.eqns}.union(
        *[_names(inner) for e in jaxpr.eqns for inner in subjaxprs(e)])


@over(SAMPLES)
def test_vmap(sample: Sample) -> None:
    """Batched along any axis, of all arguments or of one, it is a loop over the examples."""
    args = [np.asarray(x) for x in sample.args]
    batch = [np.stack([x, np.flip(x)]) for x in args]
    mapped = [list(range(len(args)))]
    if len(args) > 1:
        mapped += [[i] for i in range(min(len(args), 3))]
    # the new axis is the last one of the first mapped argument, and the first of the others
    in_axes = [tuple(None if i not in which else -1 if i == which[0] else 0
                     for i in range(len(args))) for which in mapped]
    given = [[x if d is None else np.moveaxis(b, 0, d)
              for x, b, d in zip(args, batch, axes, strict=True)] for axes in in_axes]
    # one program for all of them, which is compiled sooner than as many programs
    mappings = [jax.vmap(sample.fun, axes) for axes in in_axes]
    all_got = jax.jit(lambda given: [f(*xs) for f, xs in zip(mappings, given, strict=True)])(given)
    compiled = jax.jit(sample.fun)
    for axes, got in zip(in_axes, all_got, strict=True):
        loop = [compiled(*[b[i] if d is not None else x
                           for x, b, d in zip(args, batch, axes, strict=True)]) for i in range(2)]
        want = [np.stack(pair) for pair in zip(*map(leaves, loop), strict=True)]
        assert_close(leaves(got), want, sample.rtol, sample.atol)


# Their derivatives count negative axes from the end, as JAX's do.
_CUMULATIVE = {"cumlogsumexp", "cummax", "cummin", "cumprod"}


def _refused(fun: Any, *args: Any) -> bool:
    try:
        jax.eval_shape(fun, *args)
    except Exception:
        return True
    return False


@over(SAMPLES)
def test_bad_parameters(sample: Sample) -> None:
    """Parameters that the operation refuses are refused under derivatives and batching, too."""
    taken = []
    for call in calls_of(sample):
        run, operands = call.run, call.operands
        lenient = call.primitive.name in _CUMULATIVE and call.params["axis"] < 0
        if lenient or not _refused(run, *operands):
            continue
        inexact = [i for i, x in enumerate(operands) if dtypes.issubdtype(x.dtype, np.inexact)]

        def moving(*xs: Any, call: Any = call, inexact: Any = inexact) -> Any:
            full = list(call.operands)
            for i, x in zip(inexact, xs, strict=True):
                full[i] = x
            return call.run(*full)

        ways = {} if not inexact else {
            "jvp": lambda *xs, f=moving: jax.jvp(f, xs, xs),
            "linearize": lambda *xs, f=moving: jax.linearize(f, *xs)[0]}
        taken += [(name, call.params) for name, way in ways.items()
                  if not _refused(way, *[operands[i] for i in inexact])]
        stacked = [np.stack([x, x]) if isinstance(x, np.ndarray) else x for x in operands]
        for mapped in {tuple(range(len(operands))), *[(i,) for i in range(len(operands))]}:
            axes = tuple([0 if i in mapped and isinstance(x, np.ndarray) else None
                          for i, x in enumerate(operands)])
            if any([a is not None for a in axes]) and not _refused(jax.vmap(run, axes), *[
                    x if a is None else s
                    for x, s, a in zip(operands, stacked, axes, strict=True)]):
                taken.append((f"vmap of {mapped}", call.params))
    assert not taken


def _differentiable(sample: Sample) -> list[int]:
    wanted = range(len(sample.args)) if isinstance(sample.diff, bool) else sample.diff
    inexact = [i for i in wanted if sample.diff is not False
               and dtypes.issubdtype(np.asarray(sample.args[i]).dtype, np.inexact)]
    return inexact


DIFFERENTIABLE = [s for s in SAMPLES if _differentiable(s)]
_WIDE = {np.dtype("float32"): np.float64, np.dtype("complex64"): np.complex128}


def _direction(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    v = rng.normal(size=like.shape)
    if like.dtype.kind == "c":
        v = v + 1j * rng.normal(size=like.shape)
    return np.asarray(v).astype(like.dtype)


@over(DIFFERENTIABLE)
def test_derivatives(sample: Sample) -> None:
    """Forward mode agrees with finite differences, and reverse mode with forward mode."""
    args = [np.asarray(x) for x in sample.args]
    argnums = _differentiable(sample)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        wide = [x.astype(_WIDE.get(x.dtype, x.dtype)) for x in args]
        try:
            jax.eval_shape(sample.fun, *wide)
        except TypeError:  # the sample is of one dtype
            wide = args

        def fun(*xs: Any) -> Any:
            full: list[Any] = list(wide)
            for i, x in zip(argnums, xs, strict=True):
                full[i] = x
            outs = jax.tree_util.tree_leaves(sample.fun(*full))
            return [o for o in outs if dtypes.issubdtype(o.dtype, np.inexact)]

        primals = [wide[i] for i in argnums]
        shapes = jax.eval_shape(fun, *primals)
        if not shapes:
            return
        tangents = [_direction(rng, x) for x in primals]
        cts = [_direction(rng, np.zeros(s.shape, s.dtype)) for s in shapes]

        def both_modes(xs: Any, vs: Any, cs: Any) -> Any:
            _, pushed = jax.jvp(fun, xs, vs)
            _, pull = jax.vjp(fun, *xs)
            return pushed, pull(cs)

        pushed, pulled = jax.jit(both_modes)(tuple(primals), tuple(tangents), cts)
        precision = max(float(dtypes.finfo(x.dtype).eps) for x in [*primals, *shapes])
        # The step and the error of central differences; it stays small, as there may be kinks.
        step, tol = (1e-5, 1e-8) if precision < 1e-10 else (1e-3, 1e-2)
        if precision > 1e-5:
            step, tol = precision ** (1 / 3), 10 * precision ** (2 / 3)
        plain = jax.jit(fun)
        up, down = [
            plain(*[(x + h * v).astype(x.dtype) for x, v in zip(primals, tangents, strict=True)])
            for h in (step, -step)
        ]
    for p, u, d in zip(leaves(pushed), leaves(up), leaves(down), strict=True):
        assert p.dtype == u.dtype
        wide_type = np.complex128 if p.dtype.kind == "c" else np.float64
        slope = (u.astype(wide_type) - d.astype(wide_type)) / (2 * step)
        np.testing.assert_allclose(p, slope, rtol=tol,
                                   atol=tol * (1 + np.max(np.abs(slope), initial=0)))
    through_out = sum(np.sum(np.real(c * p)) for c, p in zip(cts, leaves(pushed), strict=True))
    through_in = sum(np.sum(np.real(c * v)) for c, v in zip(leaves(pulled), tangents, strict=True))
    np.testing.assert_allclose(through_in, through_out, rtol=1e3 * precision,
                               atol=1e3 * precision)
    for c, x in zip(leaves(pulled), primals, strict=True):
        assert c.dtype == x.dtype and c.shape == x.shape


# -- completeness ----------------------------------------------------------------------------------

# Primitives that hold programs or are about placement: their rules have tests of their own.
CALLS = {
    "call_exported", "closed_call", "composite", "cond", "custom_jvp_call", "custom_lin",
    "custom_linear_solve", "custom_remat", "custom_root", "custom_vjp_call", "custom_vmap_call",
    "device_put", "jit", "lanes", "linear_call", "outlined_call", "remat2", "remat_opt", "scan",
    "while",
}

# Values that are not arrays, or results that there are none of: tests/lax/test_staging.py, and
# test_callbacks.py and test_foreign_calls.py for what calls other code; sizes: tests/export.
STAGING = {"after_all", "buffer_callback", "create_token", "dce_sink", "debug_callback",
           "dim_as_value", "ffi_call", "inspect_sharding", "io_callback", "pure_callback", "stage"}

# References, which programs have no more when they are lowered: tests/references.
REFERENCES = {"addupdate", "dma_start", "dma_wait", "empty_ref", "free_ref", "freeze", "get",
              "new_ref", "remote_dma_start", "remote_signal", "semaphore_read", "semaphore_signal",
              "semaphore_wait", "swap"}

# Operations over named axes, of which no program consists that can run: samples are in
# tests/lax/test_collectives.py.
OVER_NAMES = {
    "all_gather", "all_to_all", "axis_index", "pbroadcast", "ppermute", "ragged_all_to_all",
    "reduce_scatter",
}

# Operations over devices: samples are in tests/devices and tests/processes.
OVER_DEVICES = {
    "all_gather_invariant", "all_gather_reduced", "all_reduce", "custom_partitioning",
    "global_array_to_host_local_array", "host_local_array_to_global_array", "layout_constraint",
    "preduced", "psum_invariant", "pvary", "reduced_vary_cast", "reshard", "shard_alike",
    "shard_map", "sharding_constraint", "unreduced_psum", "unreduced_reduce_scatter",
    "vary_unreduced_cast",
}
# Calls of programs that tell XLA something: tests/experimental/test_calls_for_xla.py.
FOR_XLA = {"compute_on", "control_dep", "fused_call", "program_order", "xla_metadata_call",
           "xla_metadata_operation", "xla_metadata_value"}
# What programs of parts become as they are lowered.
AT_THE_END = {"on_parts", "open_sum"}
# Kernels: tests/experimental/test_pallas.py; checks: test_checkify.py beside it.
KERNELS = {"check", "mosaic_call", "multiple_of", "pallas_call"}
# What kernels alone have, whose text is in lowering/mosaic.py: test_kernels_for_tpus.py there.
IN_KERNELS = {"device_id", "prng_random_bits", "prng_seed"}
# What has shapes of several sizes: tests/dynamic.
OF_SIZES = {"dynamic_call"}
# What collectives become at the end, and what says itself how it is cut, as in JAX.
NEITHER_DERIVED_NOR_BATCHED = {"all_reduce", "custom_partitioning", "mosaic_call", "platform_index",
                               *AT_THE_END}


# Parts of decompositions, and reductions by similarity: nobody has asked for their derivatives.
UNDIFFERENTIATED = {"geqp3", "geqrf", "getrf", "hessenberg", "householder_product", "schur",
                    "tridiagonal"}


@pytest.mark.parametrize("name", sorted(PRIMITIVES.keys() - IN_KERNELS))
def test_primitive_is_complete(name: str) -> None:
    primitive = PRIMITIVES[name]
    missing = []
    if primitive.shape_rule is None:
        missing.append("shape rule")
    lowered = rules_for("cpu")[name] is not None or primitive.physical is not None \
        or primitive.discharge is not None
    if not lowered and primitive.decomposition is None and primitive.own_impl is None:
        missing.append("lowering rule or decomposition")
    if name in REFERENCES and (primitive.discharge is None or primitive.effects is None):
        missing.append("rule to discharge it, or effects")
    of_transformations = name == "add_any"  # the sum that they make
    if name not in CALLS | STAGING | REFERENCES and not of_transformations:
        made_of_others = primitive.decomposition is not None
        final = made_of_others or name in NEITHER_DERIVED_NOR_BATCHED
        if primitive.batch is None and primitive.batch_axis is None and not final:
            missing.append("batching rule")
        if forward_rule(primitive) is None and not final and name not in UNDIFFERENTIATED:
            missing.append("jvp rule")
        if primitive.linear and primitive.transpose is None and name != "stop_gradient":
            missing.append("transpose rule")
        elsewhere = OVER_NAMES | OVER_DEVICES | FOR_XLA | AT_THE_END | KERNELS | OF_SIZES
        if name not in elsewhere and not any(s.primitive == name for s in SAMPLES):
            missing.append("sample in tests/ops")
    assert not missing, f"{name} lacks: {', '.join(missing)}"


def test_what_moves_values_and_is_fused() -> None:
    """XLA makes loops of these; not of collectives, nor of what reads or makes references, which
    move values, too."""
    fused = {name for name, p in PRIMITIVES.items() if p.fuses}
    assert {name for name in fused if PRIMITIVES[name].cost is None} == {
        "bitcast_convert_type", "bits_apart", "concatenate", "dynamic_slice", "gather", "name",
        "pad", "preduced", "pvary", "reduced_vary_cast", "rev", "split", "stack", "stop_gradient",
        "tie", "tile", "unstack", "vary_unreduced_cast"}
    assert {name for name, p in PRIMITIVES.items() if p.of_elements} - fused == {
        "all_gather", "all_gather_invariant", "all_to_all", "dynamic_update_slice", "empty_ref",
        "freeze", "get", "new_ref", "pbroadcast", "ppermute", "scatter", "swap"}


@pytest.mark.parametrize("name", [n for n in dir(lax) if not n.startswith("_")])
def test_public_function_has_an_example(name: str) -> None:
    value = getattr(lax, name)
    if hasattr(value, "__code__") and value.__module__.startswith("pyjx.lax."):
        assert value.__doc__ and ">>> " in value.__doc__, f"lax.{name} has no example"
