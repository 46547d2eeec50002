"""Objects that jax and pyjx, under its name, pickle; and how they are compared."""

import jax
import jax.custom_batching
import jax.custom_derivatives
import jax.example_libraries.optimizers
import jax.experimental.layout
import jax.experimental.sparse
import jax.export
import jax.extend.random
import jax.interpreters.ad
import jax.interpreters.partial_eval
import jax.numpy as jnp
import jax.scipy.optimize
import jax.scipy.spatial.transform
import jax.scipy.stats
import numpy as np
from jax import lax
from jax.experimental import checkify, pallas, sparse
from jax.experimental.layout import Layout
from jax.experimental.pallas import mosaic_gpu, tpu
from jax.experimental.random import StatefulPRNG, stateful_rng
from jax.flatten_util import ravel_pytree
from jax.scipy.spatial.transform import Rotation
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SPACE = AbstractMesh((2, 2), ("x", "y"), (AxisType.Auto, AxisType.Auto))
MIXED = AbstractMesh((2, 4), ("x", "y"), (AxisType.Auto, AxisType.Explicit))

MAKERS = {
    "array": lambda: jnp.arange(6, dtype="float32").reshape(2, 3),
    "scalar": lambda: jnp.float32(2),
    "weak": lambda: jnp.asarray(1.0),
    "empty": lambda: jnp.zeros((0, 3)),
    "complex": lambda: jnp.array([1 + 2j]),
    "bool": lambda: jnp.array([True, False]),
    "bfloat16": lambda: jnp.arange(3, dtype="bfloat16"),
    "int4": lambda: jnp.arange(3, dtype="int4"),
    "float8": lambda: jnp.arange(3, dtype="float8_e4m3fn"),
    "committed": lambda: jax.device_put(np.arange(3.0), jax.devices()[0]),
    "tree": lambda: {"w": jnp.ones((2, 2)), "b": [jnp.zeros(2), None, ("text", 1)]},
    "objects": lambda: np.array([jnp.ones(2), None], dtype=object),
    "state": lambda: jax.example_libraries.optimizers.adam(0.1)[0]({"a": jnp.ones(2)}),
    "key": lambda: jax.random.key(3),
    "keys": lambda: jax.random.split(jax.random.key(3), 4),
    "rbg": lambda: jax.random.key(3, impl="rbg"),
    "unsafe_rbg": lambda: jax.random.key(3, impl="unsafe_rbg"),
    "old key": lambda: jax.random.PRNGKey(3),
    "key dtype": lambda: jax.random.key(0).dtype,
    "prng_key": lambda: jax.dtypes.prng_key,
    "float0": lambda: jax.dtypes.float0,
    "scalar type": lambda: (jnp.float32, jnp.bfloat16, jnp.bool_),
    "dtype": lambda: jnp.dtype("bfloat16"),
    "struct": lambda: jax.ShapeDtypeStruct((2, 3), jnp.float32),
    "weak struct": lambda: jax.ShapeDtypeStruct((2,), jnp.bfloat16, weak_type=True),
    "struct on a mesh": lambda: jax.ShapeDtypeStruct(
        (2, 4), np.float32, sharding=NamedSharding(SPACE, P("x"))),
    "struct of keys": lambda: jax.eval_shape(lambda: jax.random.key(0)),
    "spec": lambda: P("x", None, ("y", "z")),
    "empty spec": lambda: P(),
    "unconstrained": lambda: (P("x", P.UNCONSTRAINED), P.UNCONSTRAINED),
    "unreduced": lambda: P("x", unreduced={"y"}),
    "specs": lambda: {"a": P("x"), "b": [P(), P(None)]},
    "abstract mesh": lambda: SPACE,
    "mixed mesh": lambda: MIXED,
    "mesh of a device": lambda: Mesh(np.array(jax.devices()[:1]), ("x",)).abstract_mesh,
    "named": lambda: NamedSharding(MIXED, P("x")),
    "memory": lambda: NamedSharding(MIXED, P("x"), memory_kind="pinned_host"),
    "axis type": lambda: AxisType.Explicit,
    "space": lambda: jax.memory.Space.Host,
    "layout": lambda: Layout((0, 1)),
    "type": lambda: jax.core.ShapedArray((2,), np.dtype("float32")),
    "treedef": lambda: jax.tree_util.tree_structure({"a": (1, [2, None])}),
    "path": lambda: jax.tree_util.tree_flatten_with_path({"a": [1]})[0][0][0],
    "partial": lambda: jax.tree_util.Partial(jnp.sum, axis=0),
    "functions": lambda: (jnp.sum, jnp.where, jnp.fft.fft, lax.sin, lax.scan, lax.psum, jax.grad,
                          jax.nn.gelu, jax.nn.softmax, jax.nn.initializers.lecun_normal,
                          jax.random.normal, jax.tree_util.tree_map),
    "classes": lambda: (jax.ShapeDtypeStruct, jax.tree_util.Partial, sparse.BCOO),
    "precision": lambda: (lax.Precision.HIGHEST, lax.DotAlgorithmPreset.BF16_BF16_F32,
                          lax.GatherScatterMode.CLIP, lax.RandomAlgorithm.RNG_PHILOX,
                          lax.RoundingMethod.TO_NEAREST_EVEN, lax.FftType.FFT),
    "numbers": lambda: (lax.GatherDimensionNumbers((0,), (0,), (0,)),
                        lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))),
    "optimum": lambda: jax.scipy.optimize.OptimizeResults(
        *[jnp.ones(1)] * len(jax.scipy.optimize.OptimizeResults._fields)),
    "rotation": lambda: Rotation.from_quat(jnp.array([0, 0, 0, 1.0])),
    "sparse": lambda: [kind.fromdense(jnp.eye(2)) for kind in (
        sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC)],
    "check": lambda: jax.export.DisabledSafetyCheck.custom_call("mine"),
    "error": lambda: jax.errors.KeyReuseError("a key was used twice"),
    "eigenvectors": lambda: jnp.linalg.eigh(jnp.eye(2)),
    "results": lambda: [jnp.linalg.svd(jnp.eye(2)), jnp.linalg.slogdet(jnp.eye(2)),
                        jnp.unique_all(jnp.ones(2)), jax.scipy.stats.mode(jnp.ones(3))],
    "argument": lambda: jax.jit(lambda x: x).lower(jnp.ones(2)).args_info,
    "vector": lambda: [ravel_pytree(tree)[1] for tree in (
        {"a": jnp.ones(2), "b": [jnp.ones((2, 2)), 1.0]}, (jnp.ones(2), jnp.ones(1, "int32")))],
    "ragged": lambda: lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (0,), (0,)),
    "convolution": lambda: lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), None),
    "density": lambda: jax.scipy.stats.gaussian_kde(jnp.arange(5.0)),
    "minimum": lambda: jax.scipy.optimize.minimize(
        lambda x: jnp.sum(x ** 2), jnp.zeros(2), method="BFGS"),
    "gradients of integers": lambda: jax.grad(
        lambda t: t["x"], allow_int=True)({"x": 1.0, "n": np.arange(3)}),
    "policies": lambda: [getattr(jax.checkpoint_policies, name) for name in (
        "dots_saveable", "nothing_saveable", "everything_saveable", "save_only_these_names")],
    "checks": lambda: [checkify.all_checks, checkify.nan_checks],
    "zero": lambda: jax.custom_derivatives.SymbolicZero(jax.typeof(jnp.ones(2))),
    "distributions": lambda: [getattr(getattr(jax.scipy.stats, name), "logpmf", None) or getattr(
        jax.scipy.stats, name).logpdf for name in ("norm", "t", "bernoulli", "dirichlet")],
    "newer functions": lambda: (
        jax.typeof, jax.new_ref, jax.freeze, jax.ref.get, jax.ref.swap, jax.debug.breakpoint,
        jax.core.eval_jaxpr, jax.core.max_dim, jax.custom_derivatives.SymbolicZero,
        sparse.JAXSparse, pallas.BlockSpec, pallas.pallas_call, pallas.ds),
    "custom": lambda: [with_rules(jax.custom_jvp(double), tangents),
                       with_rules(jax.custom_vjp(double), forward, backward),
                       jax.custom_batching.custom_vmap(double)],
    "generator": lambda: stateful_rng(3),
    "reference": lambda: jax.new_ref(jnp.arange(2.0)),
    "kernel": lambda: (pallas.ANY, pallas.ds(0, 3), pallas.BlockSpec((1,), None)),
    "grid": lambda: pallas.GridSpec((2,), (pallas.BlockSpec((1,), None),)),
    "error of a tracer": lambda: _raised(lambda: jax.jit(lambda x: bool(x))(1.0)),
    "error of a mask": lambda: _raised(
        lambda: jax.jit(lambda x: x[x > 0])(jnp.ones(3))),
    "error of a size": lambda: _raised(lambda: bool(jax.export.symbolic_shape("a")[0] > 5)),
    "tracers": lambda: [jax.core.Tracer, jax.interpreters.ad.JVPTracer,
                        jax.interpreters.partial_eval.DynamicJaxprTracer],
    "one of its kind": lambda: [jnp.r_, jnp.c_, jnp.mgrid, jnp.ogrid],
    "generators": lambda: jax.extend.random.threefry_prng_impl,
    "spaces of chips": lambda: [tpu.ACC, tpu.VMEM, mosaic_gpu.SMEM, mosaic_gpu.Barrier],
}


def double(x):
    return 2 * x


def tangents(primals, tangents):
    return 2 * primals[0], 3 * tangents[0]


def forward(x):
    return 2 * x, x


def backward(x, g):
    return (4 * g * x,)


def with_rules(function, *rules):
    (function.defjvp if len(rules) == 1 else function.defvjp)(*rules)
    return function


def _raised(fun):
    try:
        fun()
    except Exception as error:
        error.args = (error.args[0].partition("\n")[0],)  # what follows names files
        return error
    raise AssertionError


def described(value):
    """What an object says, as data that is compared between packages."""
    if getattr(value, "dtype", None) == jax.dtypes.float0 and hasattr(value, "shape"):
        return "float0", value.shape
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [described(v) for v in value]
    if isinstance(value, dict):
        return {k: described(v) for k, v in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return described(list(value))
    if isinstance(value, jax.Array):
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return str(value.dtype), np.asarray(jax.random.key_data(value)).tolist()
        return (str(value.dtype), value.weak_type, value.shape,
                np.asarray(value).astype(complex).tolist())
    if isinstance(value, sparse.JAXSparse):
        return type(value).__name__, described(value.todense())
    if isinstance(value, Rotation):
        return described(value.as_quat())
    if isinstance(value, jax.export.DisabledSafetyCheck):
        return str(value)
    if isinstance(value, Exception):
        return type(value).__name__, str(value).split("\n")[0]
    if isinstance(value, jax.tree_util.Partial):
        return value.func.__name__, value.args, value.keywords
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    if isinstance(value, jax.scipy.stats.gaussian_kde):
        return described(value(jnp.ones(1)).round(3)), described(value.dataset)
    if isinstance(value, lax.RaggedDotDimensionNumbers):
        return (value.dot_dimension_numbers, value.lhs_ragged_dimensions,
                value.rhs_group_dimensions)
    if isinstance(value, (jax.custom_jvp, jax.custom_vjp)):
        return float(value(1.0)), float(jax.grad(value)(1.0))
    if isinstance(value, jax.custom_batching.custom_vmap):
        return float(value(1.0))
    if isinstance(value, StatefulPRNG):
        return described(value.key())
    if isinstance(value, jax.Ref):
        return "reference", described(value[...])
    if isinstance(value, frozenset):
        return sorted([described(v) for v in value])
    if isinstance(value, jax.custom_derivatives.SymbolicZero):
        return repr(value.aval)
    if isinstance(value, pallas.GridSpec):
        return value.grid, described(value.in_specs)
    if type(value).__name__ in ("HashablePartial", "Unravel"):
        leaves = (value.tree if hasattr(value, "tree") else value.args[0]).num_leaves
        return described(value(jnp.arange(7.0 if leaves == 3 else 3.0)))
    leaves = jax.tree_util.tree_leaves(value)
    if leaves and leaves[0] is not value:
        return type(value).__name__, described(leaves)
    return repr(value).replace("PartitionSpec(", "P(").replace("jax.memory.Space", "MemorySpace")
