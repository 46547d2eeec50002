"""How many bytes the values of StableHLO and HLO have, and how much arithmetic an operation is.

Arithmetic is told by the leading terms of the usual algorithms; a transcendental function of a
number counts as one operation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from pyjx.core.arithmetic import products
from pyjx.runtime.costs import plain
from pyjx.viewer.listing import APPLIED, Bodies

_HLO_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<=\s]*)\]")
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)([^<>,]+(?:<[^<>]*>)?)[^<>]*>")
_DIGITS = re.compile(r"\d+")


def _bits(element: str) -> int:
    """Bits of an element of a type such as `bf16`, `pred`, `ui8` or `complex<f32>`; 0 of tokens.

    >>> [_bits(t) for t in ("f32", "pred", "i1", "complex<f32>", "c64", "f8E4M3FN", "token")]
    [32, 8, 8, 64, 64, 8, 0]
    """
    if element in ("pred", "i1"):
        return 8
    digits = _DIGITS.search(element)
    if digits is None:
        return 0
    return int(digits[0]) * (2 if element.startswith("complex") else 1)


Shape = tuple[int, ...]
Arrays = tuple[tuple[Shape, int], ...]  # shapes, and bits of an element


@lru_cache(4096)
def hlo_arrays(text: str) -> Arrays:
    """Shape and bits of an element of each array in a type of HLO.

    >>> hlo_arrays("(f32[8,64]{1,0}, s32[])")
    (((8, 64), 32), ((), 32))
    """
    return tuple([(tuple(map(int, _DIGITS.findall(dims))), _bits(element))
                  for element, dims in _HLO_ARRAY.findall(text)])


@lru_cache(4096)
def tensors(text: str) -> Arrays:
    """Shape and bits of an element of each tensor in types of StableHLO; 1 for a size not known.

    >>> tensors("tensor<?x8xcomplex<f32>>, tensor<i1>")
    (((1, 8), 64), ((), 8))
    """
    return tuple([(tuple([1 if d == "?" else int(d) for d in dims.split("x")[:-1]]),
                   _bits(element)) for dims, element in _TENSOR.findall(text)])


def bytes_of(arrays: Arrays) -> int:
    """Bytes of some arrays.

    >>> bytes_of(hlo_arrays("f32[8,64]{1,0}")), bytes_of(hlo_arrays("s4[3]"))
    (2048, 2)
    """
    return sum([(math.prod(shape) * bits + 7) // 8 for shape, bits in arrays])


# What does an operation an element. `convert` and `select` only move.
_ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare complex cosine count_leading_zeros divide erf "
    "exponential exponential_minus_one floor imag is_finite log log_plus_one logistic maximum "
    "minimum multiply negate not or popcnt population_count power real remainder "
    "round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic "
    "shift_right_logical sign sine sqrt subtract tan tanh xor")
_ELEMENTWISE_NAMES = frozenset(_ELEMENTWISE.split())
_CONTRACTING = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}|contracting_dims = \[([\d, ]*)\] x|"
                          r"lhs_contracting_dimensions\"?(?: = |:)\[([\d, \"]*)\]")
_LIBRARY_PRODUCT = re.compile(r'custom_call_target="__cublas|__triton_gemm')
_WINDOW = re.compile(r"(?:window=\{size=|window_dimensions = array<i64: )([\dx, ]+)")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)|"
                     r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")

_COMBINING = frozenset(("reduce", "reduce_window", "select_and_scatter", "scatter", "all_reduce",
                        "reduce_scatter"))


def arithmetic(operation: str, text: str, operands: Sequence[Shape], results: Sequence[Shape]
               ) -> float:
    """Arithmetic operations of one operation.

    >>> arithmetic("dot", "lhs_contracting_dims={1}", [(3, 4), (4, 5)], [(3, 5)])
    120.0
    >>> arithmetic("stablehlo.add", "", [(3, 4), (3, 4)], [(3, 4)])
    12.0
    """
    name = plain(operation)
    out = float(sum(map(math.prod, results)))
    if name in _ELEMENTWISE_NAMES:
        return out
    if name == "custom_call" and operands and _LIBRARY_PRODUCT.search(text):
        name, out = "dot", float(math.prod(results[0]))  # behind it is space to work in
    if name in ("dot", "dot_general") and operands:
        found = _CONTRACTING.search(text)
        if found is None and out:  # `stablehlo.dot`: (m k)(k n) / (m n) = k squared
            return 2 * out * math.sqrt(math.prod(map(math.prod, operands[:2])) / out)
        dims = map(int, re.findall(r"\d+", "".join(filter(None, found.groups())))) if found else ()
        return 2 * out * math.prod([operands[0][d] for d in dims if d < len(operands[0])])
    if name == "convolution" and len(operands) > 1:
        return _convolution(text, operands[0], operands[1], results[0])
    if name == "sort" and operands and operands[0]:
        return math.prod(operands[0]) * math.log2(max(operands[0][-1], 2))
    if name == "fft" and operands and operands[0]:
        return 5 * out * math.log2(max(operands[0][-1], 2))
    return 0.0


def combinations(operation: str, text: str, operands: Sequence[Shape], results: Sequence[Shape]
                 ) -> Bodies | None:
    """How an operation runs its bodies on single elements; None if it is none that does.

    >>> combinations("reduce-window", "window={size=2x3 pad=0_0x1_1}", [(4, 4), ()], [(3, 4)])
    Bodies(how=2, times=(60.0,))
    >>> combinations("stablehlo.reduce", "", [(3, 4), ()], [(3,)]).times
    (9.0,)
    """
    name = plain(operation)
    if name not in _COMBINING or not operands or not results:
        return None
    sizes, out = [float(math.prod(shape)) for shape in operands], float(math.prod(results[0]))
    window = _WINDOW.search(text) if name in ("reduce_window", "select_and_scatter") else None
    joined = math.prod(map(int, re.findall(r"\d+", window[1]))) - 1 if window else 0
    times: tuple[float, ...] = (sum(sizes),)  # over devices, of each operand
    if name == "reduce":
        times = (max(sizes[0] - out, 0.0),)
    elif name == "reduce_window":
        times = (out * joined,)
    elif name == "scatter":
        times = (sizes[-1],)
    elif name == "select_and_scatter":  # what is scattered comes second
        times = (sum(sizes[1:2]) * joined, sum(sizes[1:2]))
    return Bodies(APPLIED, times)


def _convolution(text: str, x: Shape, kernel: Shape, out: Shape) -> float:
    """As `pyjx.core.arithmetic.products` counts it."""
    found = _LABELS.search(text)
    sides = [re.findall(r"\w", side) for side in found.groups() if side] if found else []
    if [len(side) for side in sides] != [len(x), len(kernel), len(out)]:
        return 2.0 * math.prod(out) * math.prod(kernel)
    n = len(out) - 2

    def along(name: str, default: int, each: int = 1) -> list[int]:
        given = re.search(rf"\b{name} ?= ?(\[\[.*?\]\]|\[[^\]]*\]|[\dx_-]+)", text)
        numbers = list(map(int, re.findall(r"-?\d+", given[1]))) if given else []
        return (numbers if len(numbers) == each * n else [default] * each * n)[::each]

    windows = zip(along("stride", 1), along("pad", 0, 2), along("lhs_dilate", 1),
                  along("rhs_dilate", 1), strict=True)
    inner, of_kernel, outer = sides
    made = [products(out[outer.index(str(i))], kernel[of_kernel.index(str(i))],
                     x[inner.index(str(i))], *window) for i, window in enumerate(windows)]
    others = out[outer.index("b")] * out[outer.index("f")]
    return 2.0 * others * kernel[of_kernel.index("i")] * math.prod(made)
