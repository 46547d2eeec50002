"""Operations on values in kernels for TPUs: elementwise ones, shapes, sums and products, control
flow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.kernels import FLOAT, INT, Kernel, is_float, kernel_rule, type_of, vector_of
from lowering.types import results_of
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

# -- elementwise operations ------------------------------------------------------------------------

_UNARY = {"exp": "math.exp", "exp2": "math.exp2", "log": "math.log", "log1p": "math.log1p",
          "tanh": "math.tanh", "rsqrt": "math.rsqrt", "sqrt": "math.sqrt", "sin": "math.sin",
          "cos": "math.cos", "floor": "math.floor", "ceil": "math.ceil"}
# Of floats, signed and unsigned integers.
_BINARY = {"add": ("addf", "addi", "addi"), "add_any": ("addf", "addi", "addi"),
           "sub": ("subf", "subi", "subi"), "mul": ("mulf", "muli", "muli"),
           "div": ("divf", "divsi", "divui"), "rem": ("remf", "remsi", "remui"),
           "pow": ("powf", "", ""), "max": ("maximumf", "maxsi", "maxui"),
           "min": ("minimumf", "minsi", "minui"),
           "and": ("", "andi", "andi"), "or": ("", "ori", "ori"), "xor": ("", "xori", "xori"),
           "shift_left": ("", "shli", "shli"), "shift_right_logical": ("", "shrui", "shrui"),
           "shift_right_arithmetic": ("", "shrsi", "shrsi")}
_COMPARISONS = {"eq": ("oeq", "eq", "eq"), "ne": ("oeq", "ne", "ne"), "lt": ("olt", "slt", "ult"),
                "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"),
                "ge": ("oge", "sge", "uge")}


def _kind(aval: Any) -> int:
    """0 for floats, 1 for signed and 2 for unsigned integers and bools."""
    return 0 if is_float(aval) else 1 if aval.dtype.kind == "i" else 2


def _both(k: Kernel, eqn: JaxprEqn, x: str, y: str) -> tuple[str, str, Any]:
    """The operands of one shape, and their type."""
    a, b = [v.aval for v in eqn.invars]
    shape = a.shape or b.shape
    return k.widened(x, a, shape), k.widened(y, b, shape), ShapedArray(shape, a.dtype)


@kernel_rule(*_UNARY, floats=FLOAT)
def _unary(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    return k.line(f"{_UNARY[eqn.primitive.name]} {x} : {type_of(eqn.outvars[0].aval)}")


@kernel_rule("max", "min", "pow", ints=FLOAT, floats=FLOAT)
@kernel_rule("rem", ints=INT, floats=FLOAT)
@kernel_rule(*(_BINARY.keys() - {"max", "min", "pow", "rem"}), ints=INT)
def _binary(k: Kernel, eqn: JaxprEqn, x: str, y: str) -> str:
    if eqn.primitive.name == "pow" and not is_float(eqn.invars[1].aval):
        exponent = eqn.invars[1].aval
        y = k.converted(y, exponent.dtype, eqn.invars[0].aval.dtype, exponent.shape)
    x, y, aval = _both(k, eqn, x, y)
    op = _BINARY[eqn.primitive.name][_kind(aval)]
    if op.startswith("sh"):
        return _shifted(k, op, x, y, aval)
    if op[:3] in ("div", "rem") and _kind(aval):
        return _divided(k, op, x, y, aval)
    if op in ("minui", "maxui"):
        return _ordered(k, op, x, y, aval)
    return k.line(f"{'math' if op == 'powf' else 'arith'}.{op} {x}, {y} : {type_of(aval)}")


def _divided(k: Kernel, op: str, x: str, y: str, aval: Any) -> str:
    """Quotients and remainders of integers: by 0 they are -1 and the dividend, as XLA's are."""
    one, zero = [k.constant(n, aval.dtype, aval.shape) for n in (1, 0)]
    by_zero = k.line(f"arith.cmpi eq, {y}, {zero} : {type_of(aval)}")
    found = k.line(f"arith.{op} {x}, {k.chosen(by_zero, one, y, aval)} : {type_of(aval)}")
    other = x if op.startswith("rem") else k.constant(-1, aval.dtype, aval.shape)
    return k.chosen(by_zero, other, found, aval)


def _turned(k: Kernel, x: str, dtype: Any, shape: Sequence[int]) -> str:
    """Integers whose highest bit is the other one: so unsigned ones lie as signed ones do."""
    signed = np.dtype(f"int{8 * dtype.itemsize}")
    return k.with_number(shape, "xori", x, dtypes.iinfo(signed).min, signed)


def _ordered(k: Kernel, op: str, x: str, y: str, aval: Any) -> str:
    """The smaller or the greater of two unsigned integers."""
    x, y = [_turned(k, z, aval.dtype, aval.shape) for z in (x, y)]
    found = k.line(f"arith.{'minsi' if op == 'minui' else 'maxsi'} {x}, {y} : {type_of(aval)}")
    return _turned(k, found, aval.dtype, aval.shape)


def _shifted(k: Kernel, op: str, x: str, y: str, aval: Any) -> str:
    """What is shifted out is gone, also by the width and more, which MLIR leaves open."""
    width = 8 * aval.dtype.itemsize
    last = k.constant(width - 1, aval.dtype, aval.shape)
    y_bound = _ordered(k, "minui", y, last, aval)
    found = k.line(f"arith.{op} {x}, {y_bound} : {type_of(aval)}")
    if op == "shrsi":
        return found
    fits = k.line(f"arith.cmpi ule, {y}, {last} : {type_of(aval)}")
    return k.chosen(fits, found, k.constant(0, aval.dtype, aval.shape), aval)


@kernel_rule(*_COMPARISONS, ints=FLOAT, floats=FLOAT)
def _compared(k: Kernel, eqn: JaxprEqn, x: str, y: str) -> str:
    x, y, aval = _both(k, eqn, x, y)
    op, name = "cmpf" if is_float(aval) else "cmpi", eqn.primitive.name
    if aval.dtype == np.bool_:
        return _compared_bools(k, name, x, y, aval)
    found = k.line(f"arith.{op} {_COMPARISONS[name][_kind(aval)]}, {x}, {y} : {type_of(aval)}")
    return k.inverted(found, aval.shape) if (op, name) == ("cmpf", "ne") else found


def _compared_bools(k: Kernel, name: str, x: str, y: str, aval: ShapedArray) -> str:
    """By and, or and exclusive or: Mosaic compares no vectors of i1."""
    if name in ("gt", "le"):
        x, y = y, x
    if name in ("lt", "gt", "ge", "le"):  # x < y = not x and y; x >= y is not that
        found = k.line(f"arith.andi {k.inverted(x, aval.shape)}, {y} : {type_of(aval)}")
    else:
        found = k.line(f"arith.xori {x}, {y} : {type_of(aval)}")
    return k.inverted(found, aval.shape) if name in ("eq", "ge", "le") else found


@kernel_rule("neg", ints=INT, floats=FLOAT)
def _neg(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.outvars[0].aval
    if is_float(aval):
        return k.line(f"arith.negf {x} : {type_of(aval)}")
    zero = k.constant(0, aval.dtype, aval.shape)
    return k.line(f"arith.subi {zero}, {x} : {type_of(aval)}")


@kernel_rule("abs", ints=INT)
def _abs(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.outvars[0].aval
    if aval.dtype.kind == "u":
        return x
    return k.line(f"math.abs{'f' if is_float(aval) else 'i'} {x} : {type_of(aval)}")


@kernel_rule("not", ints=INT)
def _not(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.outvars[0].aval
    if aval.dtype == np.bool_:
        return k.inverted(x, aval.shape)
    return k.with_number(aval.shape, "xori", x, -1, aval.dtype)


@kernel_rule("sign", ints=FLOAT, floats=FLOAT)
def _sign(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.outvars[0].aval
    zero, found, op = k.constant(0, aval.dtype, aval.shape), x, "cmpf o" if is_float(aval) else \
        "cmpi s"
    for direction, value in (("gt", 1), ("lt", -1)):
        if value < 0 and aval.dtype.kind == "u":
            break
        op = "cmpi u" if aval.dtype.kind == "u" else op
        there = k.line(f"arith.{op}{direction}, {x}, {zero} : {type_of(aval)}")
        found = k.chosen(there, k.constant(value, aval.dtype, aval.shape), found, aval)
    return found


@kernel_rule("is_finite", floats=FLOAT)
def _is_finite(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.invars[0].aval
    size = k.line(f"math.absf {x} : {type_of(aval)}")
    return k.with_number(aval.shape, "cmpf olt,", size, math.inf, aval.dtype)


@kernel_rule("round", floats=FLOAT)
def _round(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    op = "roundeven" if getattr(eqn.params["rounding_method"], "value", 1) else "round"
    return k.line(f"math.{op} {x} : {type_of(eqn.outvars[0].aval)}")


@kernel_rule("square", ints=INT)
def _square(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.outvars[0].aval
    return k.line(f"arith.{'mulf' if is_float(aval) else 'muli'} {x}, {x} : {type_of(aval)}")


@kernel_rule("select_n", ints=INT, floats=FLOAT)
def _select(k: Kernel, eqn: JaxprEqn, which: str, *cases: str) -> str:
    out = eqn.outvars[0].aval
    if eqn.invars[0].aval.dtype != np.bool_ or len(cases) != 2:
        raise NotImplementedError("pallas_call for TPU: select_n takes a bool and two cases in a "
                                  "kernel. Nest jnp.where.")
    no, yes = [k.widened(x, v.aval, out.shape) for x, v in zip(cases, eqn.invars[1:], strict=True)]
    return k.chosen(which, yes, no, out, eqn.invars[0].aval.shape)


@kernel_rule("convert_element_type")
def _convert(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    old = eqn.invars[0].aval
    return k.converted(x, old.dtype, eqn.outvars[0].aval.dtype, old.shape)


@kernel_rule("stop_gradient", "optimization_barrier", "copy")
def _same(k: Kernel, eqn: JaxprEqn, *xs: str) -> Any:
    return list(xs) if eqn.primitive.multiple_results else xs[0]


# -- shapes ----------------------------------------------------------------------------------------


@kernel_rule("broadcast_in_dim")
def _broadcast(k: Kernel, eqn: JaxprEqn, x: str, *_: str) -> str:
    old, new = eqn.invars[0].aval, eqn.outvars[0].aval
    if not new.shape:
        return x
    if not old.shape:
        return k.widened(x, old, new.shape)
    dims = eqn.params["broadcast_dimensions"]
    ones = [old.shape[dims.index(i)] if i in dims else 1 for i in range(len(new.shape))]
    x = k.reshaped(x, old.dtype, old.shape, ones)
    if tuple(ones) == new.shape:
        return x
    return k.line(f"vector.broadcast {x} : {vector_of(ones, old.dtype)} to {type_of(new)}")


@kernel_rule("reshape", "squeeze")
def _reshape(k: Kernel, eqn: JaxprEqn, x: str, *_: str) -> str:
    old, new = eqn.invars[0].aval, eqn.outvars[0].aval
    return k.reshaped(x, old.dtype, old.shape, new.shape)


@kernel_rule("transpose")
def _transpose(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    old, new = eqn.invars[0].aval, eqn.outvars[0].aval
    return k.line(f"tpu.transpose {x}, {list(eqn.params['permutation'])} : {type_of(old)} -> "
                  f"{type_of(new)}")


@kernel_rule("iota")
def _iota(k: Kernel, eqn: JaxprEqn) -> str:
    aval = eqn.outvars[0].aval
    return k.iota(aval.shape, aval.dtype, eqn.params["dimension"])


@kernel_rule("bitcast_convert_type")
def _bitcast(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    old, new = eqn.invars[0].aval, eqn.outvars[0].aval
    if old.shape != new.shape:
        raise NotImplementedError("pallas_call for TPU: bits are those of a dtype of the same "
                                  "width in a kernel; pltpu.bitcast takes others.")
    return k.line(f"arith.bitcast {x} : {type_of(old)} to {type_of(new)}")


@kernel_rule("concatenate")
def _concatenate(k: Kernel, eqn: JaxprEqn, *xs: str) -> str:
    types = ", ".join([type_of(v.aval) for v in eqn.invars])
    return k.line(f"tpu.concatenate {', '.join(xs)} in {eqn.params['dimension']} : {types} -> "
                  f"{type_of(eqn.outvars[0].aval)}")


@kernel_rule("slice")
def _slice(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    new, params = eqn.outvars[0].aval, eqn.params
    strides = list(params["strides"] or [1] * len(new.shape))
    return k.line(f'"vector.extract_strided_slice"({x}) {{offsets = {list(params["start_indices"])}'
                  f", sizes = {list(new.shape)}, strides = {strides}}} : "
                  f"({type_of(eqn.invars[0].aval)}) -> {type_of(new)}")


# -- sums and products -----------------------------------------------------------------------------

# What each begins with, and its kind for floats, signed and unsigned integers.
_REDUCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[str, str, str]]] = {
    "reduce_sum": (lambda dtype: 0, ("add", "add", "add")),
    "reduce_max": (lambda dtype: dtypes.iinfo(dtype).min if dtype.kind in "iu" else -math.inf,
                   ("maximumf", "maxsi", "maxui")),
    "reduce_min": (lambda dtype: dtypes.iinfo(dtype).max if dtype.kind in "iu" else math.inf,
                   ("minimumf", "minsi", "minui")),
}


@kernel_rule("reduce_max", "reduce_min", ints=FLOAT, floats=FLOAT)
@kernel_rule("reduce_sum", ints=INT, floats=FLOAT)
def _reduce(k: Kernel, eqn: JaxprEqn, x: str) -> Any:
    old, new, axes = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params["axes"]
    first, kinds = _REDUCTIONS[eqn.primitive.name]
    shape, kept = old.shape, new.shape
    if not axes:
        return x
    if old.dtype == np.bool_:
        raise NotImplementedError(f"pallas_call for TPU: {eqn.primitive} takes no bools in a "
                                  "kernel. Take jnp.any or jnp.all.")
    if not is_float(old) and axes[-1] == len(shape) - 1 and shape[-1] > 1:
        return NotImplemented  # units that go across lanes take floats
    if not kept:  # to a scalar: of a vector with an axis that stays
        x = k.reshaped(x, old.dtype, shape, (1, *shape))
        shape, kept, axes = (1, *shape), (1,), [a + 1 for a in axes]
    kind, dtype = _kind(old), old.dtype
    turned = kind == 2 and eqn.primitive.name != "reduce_sum"
    if turned:  # unsigned integers lie as signed ones do once their highest bit is another
        kind, dtype = 1, np.dtype(f"int{8 * dtype.itemsize}")
        x = _turned(k, x, dtype, shape)
    start = k.constant(first(dtype), dtype, kept)
    x = k.line(f"vector.multi_reduction <{kinds[kind]}>, {x}, {start} {list(axes)} : "
               f"{vector_of(shape, old.dtype)} to {vector_of(kept, old.dtype)}")
    if turned:
        x = _turned(k, x, dtype, kept)
    if new.shape:
        return x
    ones = (1,) * len(shape)
    return k.reshaped(k.reshaped(x, old.dtype, kept, ones), old.dtype, ones, ())


def _contract_precision(precision: Any) -> str:
    """The attribute for a precision, one or one of each operand."""
    both = precision if isinstance(precision, tuple) else (precision, precision)
    names = {getattr(p, "name", None) for p in both}
    if names <= {None, "DEFAULT"}:
        return ""
    if names == {"HIGHEST"}:
        return ", precision = #tpu.contract_precision<fp32>"
    raise NotImplementedError(f"pallas_call for TPU: products of the precision {precision} have no "
                              "form in a kernel. Take Precision.DEFAULT or HIGHEST for both.")


@kernel_rule("dot_general")
def _dot(k: Kernel, eqn: JaxprEqn, x: str, y: str) -> Any:
    a, b, out = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    ln = [i for i in range(len(a.shape)) if i not in (*lc, *lb)]
    rn = [i for i in range(len(b.shape)) if i not in (*rc, *rb)]
    if (len(a.shape) < 2 or len(b.shape) < 2) and len(lc) == 1:
        return NotImplemented
    if len(lc) != 1:
        raise NotImplementedError(
            f"pallas_call for TPU: a product of {a.str_short()} and {b.str_short()} has no form in "
            "a kernel. Take matrices, or batches of them.")
    order = [n for i in lb for n in (0, i)] + [n for i in ln for n in (0, i)] + [
        n for i in rn for n in (1, i)]
    total = out.dtype if out.dtype.itemsize >= 4 else np.dtype(
        np.float32 if is_float(out) else np.int32)
    start = k.constant(0, total, out.shape)
    numbers = ", ".join([str(list(n)) for n in (lc, rc, ln, rn, order, lb, rb)])
    if any([x.dtype.kind == "u" or (x.dtype.kind == "i" and x.dtype.itemsize > 1) for x in (a, b)]):
        raise NotImplementedError(f"pallas_call for TPU: a product of {a.str_short()} and "
                                  f"{b.str_short()} has no form in a kernel: of integers there are "
                                  "those of int8. Convert others to floats.")
    exact = _contract_precision(eqn.params["precision"]) if a.dtype.itemsize == 4 else ""
    wide = vector_of(out.shape, total)
    x = k.line(f"tpu.matmul {x}, {y}, {start} {{dimension_numbers = #tpu.dot_dimension_numbers<"
               f"{numbers}>{exact}, transpose_lhs_hint = false}} : {type_of(a)}, {type_of(b)}, "
               f"{wide} -> {wide}")
    if total == out.dtype:
        return x
    return k.line(f"arith.{'truncf' if is_float(out) else 'trunci'} {x} : {wide} to {type_of(out)}")


# -- control flow ----------------------------------------------------------------------------------


def _yielded(k: Kernel, names: Sequence[str], avals: Sequence[Any]) -> None:
    types = ", ".join(map(type_of, avals))
    k.raw(f"scf.yield {', '.join(names)} : {types}" if names else "scf.yield")


@kernel_rule("cond")
def _cond(k: Kernel, eqn: JaxprEqn, which: str, *operands: str) -> list[str]:
    return _branch(k, eqn, which, operands, 0)


def _branch(k: Kernel, eqn: JaxprEqn, which: str, operands: Sequence[str], first: int) -> list[str]:
    """The branches from the `first` one on."""
    branches, avals = eqn.params["branches"], [v.aval for v in eqn.outvars]
    if first == len(branches) - 1:
        return k.program(branches[first].jaxpr, branches[first].consts, operands)
    at = k.constant(first, INT)
    op = "sgt" if first == len(branches) - 2 else "ne"  # indices beyond the last are that
    later = k.line(f"arith.cmpi {op}, {which}, {at} : i32")
    prefix, names = results_of(k.name, len(avals))
    result = f" -> ({', '.join(map(type_of, avals))})" if avals else ""
    k.raw(f"{prefix}scf.if {later}{result} {{")
    with k.region():
        _yielded(k, _branch(k, eqn, which, operands, first + 1), avals)
    k.raw("} else {")
    with k.region():
        taken = branches[first]
        _yielded(k, k.program(taken.jaxpr, taken.consts, operands), avals)
    k.raw("}")
    return names


@kernel_rule("scan")
def _scan(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    params, body = eqn.params, eqn.params["jaxpr"]
    consts, carry = params["num_consts"], params["num_carry"]
    if len(operands) > consts + carry or len(eqn.outvars) > carry:
        raise NotImplementedError("pallas_call for TPU: a scan in a kernel takes and gives no "
                                  "stacked arrays. Loop over a reference with pl.loop.")
    avals = [v.aval for v in eqn.outvars]
    low, high, one = [k.constant(n, INT) for n in (0, params["length"], 1)]
    args = [k.name() for _ in avals]
    prefix, names = results_of(k.name, carry)
    first = ", ".join([f"{a} = {x}" for a, x in zip(args, operands[consts:], strict=True)])
    types = f" iter_args({first}) -> ({', '.join(map(type_of, avals))})" if avals else ""
    k.raw(f"{prefix}scf.for {k.name()} = {low} to {high} step {one}{types} : i32 {{")
    with k.region():
        outs = k.program(body.jaxpr, body.consts, [*operands[:consts], *args])
        _yielded(k, outs, avals)
    k.raw("}")
    return names


@kernel_rule("while")
def _while(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    params, avals = eqn.params, [v.aval for v in eqn.outvars]
    ours, theirs = params["cond_nconsts"], params["body_nconsts"]
    types = ", ".join(map(type_of, avals))
    args, inner = [k.name() for _ in avals], [k.name() for _ in avals]
    prefix, names = results_of(k.name, len(avals))
    first = ", ".join([f"{a} = {x}" for a, x in zip(args, operands[ours + theirs:], strict=True)])
    k.raw(f"{prefix}scf.while ({first}) : ({types}) -> ({types}) {{")
    with k.region():
        goes = params["cond_jaxpr"]
        (again,) = k.program(goes.jaxpr, goes.consts, [*operands[:ours], *args])
        k.raw(f"scf.condition({again}) {', '.join(args)} : {types}" if args else
              f"scf.condition({again})")
    k.raw("} do {")
    with k.region():
        k.raw(f"^bb0({', '.join([f'{a}: {type_of(v)}' for a, v in zip(inner, avals, strict=True)])}"
              "):")
        body = params["body_jaxpr"]
        outs = k.program(body.jaxpr, body.consts, [*operands[ours:ours + theirs], *inner])
        _yielded(k, outs, avals)
    k.raw("}")
    return names
