"""What kernels for TPUs compute: the elementwise operations of their modules, run as MLIR's
documents say, beside XLA on this machine; and formulas of operations that have no form."""

import re
from operator import add, and_, ge, gt, le, lt, mul, ne, or_, sub, xor

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.dtypes import bfloat16
from pyjx.experimental import pallas as pl
from tests.experimental.test_kernels_for_tpus import formula, modules

DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "f32": np.float32,
          "bf16": bfloat16, "index": np.int64}
_TYPE = re.compile(r"(?:vector|memref)<((?:\d+x)+)(\w+)|\b(i1|i8|i16|i32|f32|bf16|index)\b")
_LINE = re.compile(r"(%\d+) = (\S+) (.*) : (.*)")
_COMPARISONS = {"eq": np.equal, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}


def _type(text):
    dims, element, scalar = _TYPE.search(text).groups()
    return DTYPES[element or scalar], tuple(map(int, dims.split("x")[:-1])) if dims else ()


def _unsigned(x):
    return x.view(f"uint{8 * x.dtype.itemsize}") if x.dtype != bool else x.astype("uint8")


def _constant(said, dtype, shape):
    number = re.sub(r"^dense<(.*)>$", r"\1", said)
    if number in ("true", "false"):
        return np.full(shape, number == "true")
    if number.startswith("0x"):
        return np.full(shape, int(number, 16), f"uint{8 * np.dtype(dtype).itemsize}").view(dtype)
    return np.full(shape, float(number) if "." in number else int(number)).astype(dtype)


def _ints(op, x, y):
    width = 8 * x.dtype.itemsize
    if op in ("shli", "shrui", "shrsi"):
        assert (y >= 0).all() and (y < width).all(), "MLIR leaves open what comes of it"
        if op == "shrui":
            return (_unsigned(x) >> _unsigned(y)).view(x.dtype)
        return x << y if op == "shli" else x >> y
    assert not op.startswith(("div", "rem")) or y.all(), "MLIR leaves open what comes of it"
    if op in ("divui", "remui"):
        return (np.floor_divide if op == "divui" else np.fmod)(_unsigned(x), _unsigned(y)).view(
            x.dtype)
    if op == "divsi":
        return np.trunc(x.astype("float64") / y).astype("int64").astype(x.dtype)
    return {"addi": add, "subi": sub, "muli": mul, "andi": and_, "ori": or_, "xori": xor,
            "maxsi": np.maximum, "minsi": np.minimum, "remsi": np.fmod}[op](x, y)


def _compared(op, predicate, x, y):
    if op == "cmpf":
        assert predicate[0] == "o"
        return _COMPARISONS[predicate[1:]](x, y) & (x == x) & (y == y)
    if predicate[0] == "u":
        x, y = _unsigned(x), _unsigned(y)
    return _COMPARISONS[predicate[1:] if predicate[0] in "us" else predicate](x, y)


def _cast(op, x, dtype):
    if op == "bitcast":
        return x.view(dtype)
    if op == "extui":
        return _unsigned(x).astype(dtype)
    if op == "fptosi":  # what comes of others is left open
        fits = (x >= -2.0 ** 31) & (x < 2.0 ** 31)
        return np.where(fits, np.trunc(np.where(fits, x, 0)), 0x5A5A5A5A).astype(dtype)
    return x.astype(dtype)


def _operation(op, said, types, env):
    words = said.split(", ")
    dtype, shape = _type(types.split(" to ")[-1])
    if op == "arith.constant":
        return _constant(said, dtype, shape)
    if op in ("arith.cmpi", "arith.cmpf"):
        return _compared(op[6:], words[0], env[words[1]], env[words[2]])
    xs = [env[word] for word in words]
    if op == "arith.select":
        return np.where(xs[0], xs[1], xs[2]).astype(xs[1].dtype)
    if op == "vector.broadcast":
        return np.broadcast_to(xs[0], shape)
    if len(xs) == 1:
        if op.startswith("math."):
            return np.abs(xs[0])
        return -xs[0] if op == "arith.negf" else _cast(op[6:], xs[0], dtype)
    if op.endswith("f"):
        return {"addf": add, "subf": sub, "mulf": mul, "maximumf": np.maximum, "remf": np.fmod,
                "minimumf": np.minimum}[op[6:]](*xs)
    return _ints(op[6:], *xs)


def run(text, *arrays):
    """What a module stores, of what its references hold first."""
    env, given, stored = {}, iter(arrays), None
    with np.errstate(all="ignore"):
        for line in text.splitlines():
            line = re.sub(r" loc\(.*", "", line).strip()
            if line.startswith("tpu.vector_store"):
                stored = env[re.search(r"\], (%\d+)", line)[1]]
            elif match := _LINE.match(line):
                name, op, said, types = match.groups()
                env[name] = next(given) if op == "vector.load" else _operation(op, said, types, env)
    return stored


def edge_values(dtype):
    """Numbers of a dtype: all of 8 bits, else the ends and some between."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return np.tile([True, False], (8, 64))
    if dtype in ("float32", "bfloat16"):
        x = np.concatenate([rng.normal(size=900) * 50, rng.uniform(-120, 120, 120),
                            [0.0, -0.0, np.nan, -1.0]]).astype("float32")
        return np.asarray(jnp.asarray(x.reshape(8, 128), dtype))
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 1024, dtype, endpoint=True)
    x[:8] = [info.min, info.max, 0, 1, 2, 3, info.max - 1, info.min + 1]
    return x.reshape(8, 128)


NUMBERS = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float32", "bfloat16"]


def in_a_kernel(f, *arrays):
    """What the module of a kernel that computes `f` of blocks says, and what NumPy or XLA does."""
    expected = jax.eval_shape(f, *arrays)
    x = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]

    def kernel(*refs):
        refs[-1][...] = f(*[ref[...] for ref in refs[:-1]])

    (text,) = modules(pl.pallas_call(kernel, expected), *x)
    held = [a.astype("int32") if a.dtype == bool else a for a in arrays]
    got = run(text, *[h.view(f"int{8 * h.itemsize}") if h.dtype.kind == "u" else h
                                    for h in held])
    got = got.astype(bool) if expected.dtype == bool else got.view(expected.dtype)
    values = got, np.asarray(f(*map(jnp.asarray, arrays)))
    return [v.astype("float32") if v.dtype == bfloat16 else v for v in values]


@pytest.mark.parametrize("new", ["bool", *NUMBERS])
@pytest.mark.parametrize("old", ["bool", *NUMBERS])
def test_values_of_conversions(old, new):
    x = edge_values(old)
    if "float" in old and "int" in new:
        x = x * x.dtype.type(2 ** 25 if new[-2:] == "32" else 300)
    got, expected = in_a_kernel(lambda x: x.astype(new), x)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("f", [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, jnp.maximum, jnp.minimum,
    lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: x != y,
    lambda x, y: jnp.where(x > y, x, y + 1), lambda x, y: -x, lambda x, y: jnp.sign(x),
    lambda x, y: abs(x), lambda x, y: jnp.square(y)], ids=range(14))
@pytest.mark.parametrize("dtype", NUMBERS)
def test_values_of_arithmetic(dtype, f):
    x = edge_values(dtype)
    got, expected = in_a_kernel(f, x, np.roll(x, 3))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("f", [
    lambda x, y: x & y, lambda x, y: x | y, lambda x, y: ~x ^ y, lax.shift_left,
    lax.shift_right_logical, lax.shift_right_arithmetic,
    lambda x, y: lax.div(x, y % y.dtype.type(7)), lambda x, y: lax.rem(x, y % y.dtype.type(7))],
    ids=range(8))
@pytest.mark.parametrize("dtype", [name for name in NUMBERS if "int" in name])
def test_values_of_bits(dtype, f):
    x = edge_values(dtype)
    got, expected = in_a_kernel(f, x, np.roll(x, 3) % 40 if f in (
        lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic) else np.roll(x, 3))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("shape", "axes"), [
    ((9,), (0,)), ((5, 7), (1,)), ((5, 7), (0, 1)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1, 2))])
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod"])
def test_formulas_of_reductions(name, shape, axes):
    x = np.random.default_rng(0).integers(-9, 9, shape, "int32")
    fun = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[name[7:]]
    got = formula(name)(jnp.asarray(x), axes=axes)
    np.testing.assert_array_equal(got, fun(x, axes).astype("int32"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_formulas_of_products_with_vectors(dtype):
    a, v = [jnp.asarray(np.random.default_rng(i).integers(-9, 9, s), dtype)
            for i, s in enumerate([(6, 7), (7,)])]
    wide = "int32" if dtype == "int8" else "float32"
    for x, y, numbers in ((a, v, ((1,), (0,))), (v, a, ((0,), (1,))), (v, v, ((0,), (0,)))):
        for kind in (wide, None):
            params = {"dimension_numbers": (numbers, ((), ())), "preferred_element_type": kind}
            got, expected = formula("dot_general")(x, y, **params), lax.dot_general(x, y, **params)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)
