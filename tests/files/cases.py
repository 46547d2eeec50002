"""Functions that are exported by pyjx, or the package that FILES_BY names; their arguments."""

import collections
import importlib
import os

import numpy as np

_BY = os.environ.get("FILES_BY", "pyjx")
jax = importlib.import_module(_BY)
jnp, lax, export = [importlib.import_module(f"{_BY}.{name}") for name in ("numpy", "lax", "export")]
Mesh, NamedSharding, P = jax.sharding.Mesh, jax.sharding.NamedSharding, jax.sharding.PartitionSpec

registered = []
Point = collections.namedtuple("Point", "x y")


class Box:
    """A pytree with auxiliary data."""

    def __init__(self, content, tag):
        self.content, self.tag = content, tag


def register():
    """Let trees of these types be written."""
    if registered:
        return
    registered.append(True)
    jax.tree_util.register_pytree_node(
        Box, lambda box: ((box.content,), box.tag), lambda tag, parts: Box(parts[0], tag))
    export.register_namedtuple_serialization(Point, serialized_name="files.Point")
    export.register_pytree_node_serialization(
        Box, serialized_name="files.Box", serialize_auxdata=str.encode,
        deserialize_auxdata=lambda data: bytes(data).decode())


def numbers(*shape):
    return (np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1) / 7


def tree(values, box, *, scale):
    return {"sum": values["a"] + values["list"][0], "none": None,
            "point": Point(values["point"].x * scale, box.content), "box": Box(scale, "out")}


def symbolic(x, y):
    return x[:y.shape[0]] * jnp.tanh(y) + x.shape[0], lax.fori_loop(0, 3, lambda i, c: c + i, y)


def by_platform(x):
    return lax.platform_dependent(x, tpu=lambda x: x + 1, default=lambda x: jnp.sin(x) + 2)


def whole_function(x):
    return jax.jit(lambda y: y + 1)(x) * 2


def calls_exported(x):
    inner = export.export(jax.jit(jnp.sin))(
        jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32))
    return inner.call(x) + 1


def keys(key):
    return jax.random.split(key), jax.random.key_data(key), jax.random.bits(key, (2,))


def dtypes(*arrays):
    return tuple([x.reshape(1, -1) for x in arrays])


def factors(x):
    return jnp.linalg.cholesky(x @ x.T + jnp.eye(3))


NAMES = ("bool", "int8", "uint16", "int4", "float16", "bfloat16", "complex64", "float8_e4m3fn",
         "float8_e5m2", "float8_e4m3b11fnuz", "float4_e2m1fn")
POINTS = {"a": numbers(2), "list": [numbers(2), None, ()], "point": Point(numbers(2), numbers(2))}

# By name: the function, its arguments, and what else: `kwargs`; `specs` and `constraints` of
# symbolic shapes; the `order` of derivatives; `platforms`; disabled `checks`.
CASES = {
    "tree": (tree, (POINTS, Box(numbers(2), "in")), {"kwargs": {"scale": numbers(2)}, "order": 1}),
    "second": (jnp.sin, (numbers(3),), {"order": 2}),
    "integers": (lambda x, i: (x * i, i), (numbers(3), np.arange(3, dtype=np.int32)),
                 {"order": 1}),
    "unused": (lambda x, y: y * 2, (numbers(3), numbers(2)), {"order": 1}),
    "nothing": (lambda: (), (), {}),
    "symbolic": (symbolic, (numbers(5), numbers(3)),
                 {"specs": "a b", "constraints": ["a >= b + 1"], "order": 1}),
    "multiple": (lambda x, y: x + y[::2], (numbers(3), numbers(6)), {"specs": "a 2*a"}),
    "platforms": (by_platform, (numbers(3),), {"platforms": ("tpu", "cpu"), "order": 1}),
    "both": (by_platform, (numbers(3),), {"platforms": ("tpu", "cpu"), "specs": "a"}),
    "names": (whole_function, (numbers(3),), {"order": 1}),
    "nested": (calls_exported, (numbers(3),), {}),
    "keys": (keys, (jax.random.key(7),), {}),
    "rbg": (keys, (jax.random.key(7, impl="rbg"),), {}),
    "dtypes": (dtypes, tuple([np.ones(2, jnp.dtype(name)) for name in NAMES]), {}),
    "factors": (factors, (numbers(3, 3),), {"order": 1}),
    "checks": (jnp.cos, (numbers(3),), {
        "platforms": ("tpu",), "checks": (export.DisabledSafetyCheck.platform(),
                                          export.DisabledSafetyCheck.custom_call("mine"))}),
    "sharded": (lambda x, y: x @ y, (("x",), ("x", "y")), {"order": 1}),
}


def arguments(name):
    """The arguments of a case."""
    _, args, more = CASES[name]
    if name == "sharded":
        mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
        args = tuple([jax.device_put(numbers(4, 4), NamedSharding(mesh, P(*axes)))
                      for axes in args])
    return args, more.get("kwargs", {})


def exported(name):
    """The case as an exported function."""
    fun, _, more = CASES[name]
    args, kwargs = arguments(name)
    if "specs" in more:
        scope = export.SymbolicScope(more.get("constraints", ()))
        args = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), x.dtype)
                for s, x in zip(more["specs"].split(), args, strict=True)]
    return export.export(jax.jit(fun), platforms=more.get("platforms"),
                         disabled_checks=more.get("checks", ()))(*args, **kwargs)


def data(value):
    """The leaves as NumPy's arrays."""
    leaves = jax.tree_util.tree_leaves(value)
    return [np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(
        x.dtype, jax.dtypes.prng_key) else x) for x in leaves]


def answers(call, name):
    """The results of a call, and if there are derivatives the gradient of their sum."""
    args, kwargs = arguments(name)
    found = data(call(*args, **kwargs))
    if CASES[name][2].get("order"):
        def total(args, kwargs):
            leaves = jax.tree_util.tree_leaves(call(*args, **kwargs))
            return sum([jnp.sum(x) * (i + 1) for i, x in enumerate(leaves)
                        if jnp.issubdtype(x.dtype, jnp.floating)])

        slopes = jax.grad(total, argnums=(0, 1), allow_int=True)(args, kwargs)
        found += [x for x in data(slopes) if x.dtype != jax.dtypes.float0]
    return found
