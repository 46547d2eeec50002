"""Lowering of random bits.

Threefry-2x32 with 20 rounds is the block cipher of Salmon, Moraes, Dror and Shaw, "Parallel random
numbers: as easy as 1, 2, 3" (SC 2011): from a key (k0, k1) and a counter (x0, x1), four rounds

    x0 += x1;  x1 = rotate(x1, r) ^ x0

alternate with the addition of a part of the key, where k2 = k0 ^ k1 ^ 0x1BD11BDA.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.builder import Block
from lowering.rules import rule
from lowering.types import tensor_type
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@rule("threefry2x32")
def _threefry2x32(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals = [v.aval for v in eqn.invars]
    out = eqn.outvars[0].aval
    function = b.module.helper(("threefry2x32", *avals), "threefry2x32", avals, [out, out],
                               lambda block, *names: _rounds(block, names, avals, out))
    return b.call(function, operands, avals, [out, out])


@rule("bits_apart", platform="cpu")
def _bits_apart(b: Block, eqn: JaxprEqn, bits: str) -> str:
    aval = eqn.outvars[0].aval
    if not aval.shape:
        return bits
    return b.line(f"stablehlo.optimization_barrier {bits} : {tensor_type(aval)}")


def _rounds(b: Block, operands: Any, avals: Any, aval: ShapedArray) -> list[str]:
    def add(x: str, y: str) -> str:
        return b.binary("stablehlo.add", x, y, aval)

    def wide(x: str, a: ShapedArray) -> str:
        return x if a.shape == aval.shape else b.broadcast(x, a, aval, ())

    k0, k1, x0, x1 = operands
    key_aval = avals[0] if avals[0].shape == avals[1].shape else aval
    if key_aval is aval:
        k0, k1 = wide(k0, avals[0]), wide(k1, avals[1])

    def xor(x: str, y: str) -> str:
        return b.binary("stablehlo.xor", x, y, key_aval)

    k2 = xor(xor(k0, k1), b.constant(_PARITY, key_aval))
    keys = (k0, k1, k2)

    def key(i: int, plus: int = 0) -> str:
        return wide(b.plus(keys[i % 3], plus, key_aval), key_aval)

    x0 = add(wide(x0, avals[2]), key(0))
    x1 = add(wide(x1, avals[3]), key(1))
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = add(x0, x1)
            left = b.binary("stablehlo.shift_left", x1, b.constant(r, aval), aval)
            right = b.binary("stablehlo.shift_right_logical", x1, b.constant(32 - r, aval), aval)
            x1 = b.binary("stablehlo.xor", x0, b.binary("stablehlo.or", left, right, aval), aval)
        x0 = add(x0, key(i + 1))
        x1 = add(x1, key(i + 2, i + 1))
    return [x0, x1]


_ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")


@rule("rng_bit_generator")
def _rng_bit_generator(b: Block, eqn: JaxprEqn, key: str) -> list[str]:
    key_aval = eqn.invars[0].aval
    out = eqn.outvars[1].aval
    b.check_known("rng_bit_generator", eqn.params, ("shape",),
                  cure=", or take bits of keys that are not of `rbg`")
    pairs = ShapedArray((2, 2), np.uint32)
    state = ShapedArray((2,), np.uint64)
    narrow = key_aval.dtype == np.uint32

    def cast(op: str, x: str, source: Any, target: Any) -> str:
        return b.line(f"stablehlo.{op} {x} : ({tensor_type(source)}) -> {tensor_type(target)}")

    if narrow:
        key = cast("bitcast_convert", cast("reshape", key, key_aval, pairs), pairs, state)
    new, bits = b.multi(
        f"stablehlo.rng_bit_generator {key}, algorithm = {_ALGORITHMS[eqn.params['algorithm']]} : "
        f"({tensor_type(state)}) -> ({tensor_type(state)}, {tensor_type(out)})", 2)
    if narrow:
        new = cast("reshape", cast("bitcast_convert", new, state, pairs), pairs, key_aval)
    return [new, bits]


@rule("rng_uniform")
def _rng_uniform(b: Block, eqn: JaxprEqn, low: str, high: str) -> str:
    low_type = tensor_type(eqn.invars[0].aval)
    out = eqn.outvars[0].aval
    size = f"tensor<{len(out.shape)}xi64>"
    shape = b.dense(np.asarray(out.shape, np.int64))
    return b.line(f"stablehlo.rng {low}, {high}, {shape}, distribution = UNIFORM : "
                  f"({low_type}, {low_type}, {size}) -> {tensor_type(out)}")
