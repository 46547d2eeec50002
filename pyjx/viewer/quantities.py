"""How many bytes the values of StableHLO and HLO have, and how much arithmetic an operation is.

Arithmetic is told by the leading terms of the usual algorithms; a transcendental function of a
number counts as one operation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pyjx.core import arithmetic as rules
from pyjx.core.arithmetic import OF_COMPLEX, OfMatrices, joined_in_windows, products
from pyjx.runtime.touched import plain
from pyjx.viewer.listing import APPLIED, Bodies

_HLO_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<=\s]*)\]")
HOST = "S(5)"  # in the layout of what is in the host's memory
_HOST_ARRAY = re.compile(
    rf"\b[a-z]\w*\[[\d,<=\s]*\]\{{[^{{}}]*{re.escape(HOST)}[^{{}}]*\}}")
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
Array = tuple[Shape, str]  # its shape, and the type of its elements
Arrays = tuple[Array, ...]


@lru_cache(4096)
def hlo_arrays(text: str) -> Arrays:
    """Shape and elements of each array in a type of HLO.

    >>> hlo_arrays("(f32[8,64]{1,0}, s32[])")
    (((8, 64), 'f32'), ((), 's32'))
    """
    return tuple([(tuple(map(int, _DIGITS.findall(dims))), element)
                  for element, dims in _HLO_ARRAY.findall(text)])


def hlo_device_arrays(text: str) -> Arrays:
    """As `hlo_arrays`, in which those in the memory of the host are of nothing.

    >>> hlo_device_arrays("(f32[8]{0:T(8)S(5)}, f32[8]{0})")
    (((0,), 'token'), ((8,), 'f32'))
    """
    return hlo_arrays(_HOST_ARRAY.sub("token[0]", text) if HOST in text else text)


@lru_cache(4096)
def tensors(text: str) -> Arrays:
    """Shape and elements of each tensor in types of StableHLO; 1 for a size not known.

    >>> tensors("tensor<?x8xcomplex<f32>>, tensor<i1>")
    (((1, 8), 'complex<f32>'), ((), 'i1'))
    """
    return tuple([(tuple([1 if d == "?" else int(d) for d in dims.split("x")[:-1]]), element)
                  for dims, element in _TENSOR.findall(text)])


def bytes_of(arrays: Arrays) -> int:
    """Bytes of some arrays.

    >>> bytes_of(hlo_arrays("f32[8,64]{1,0}")), bytes_of(hlo_arrays("s4[3]"))
    (2048, 2)
    """
    return sum([(math.prod(shape) * _bits(element) + 7) // 8 for shape, element in arrays])


# What does an operation an element. `convert`, `select` and parts of complex numbers only move.
_ELEMENTWISE = (
    "abs acos acosh add and asin asinh atan atan2 atanh bessel_i1e cbrt ceil clamp compare cosh "
    "cosine count_leading_zeros digamma divide erf erf_inv erfc exponential exponential_minus_one "
    "floor is_finite lgamma log log_plus_one logistic maximum minimum multiply negate next_after "
    "not or polygamma popcnt population_count power reduce_precision remainder round_nearest_afz "
    "round_nearest_even rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine sinh "
    "sqrt square subtract tan tanh xor zeta")
_ELEMENTWISE_NAMES = frozenset(_ELEMENTWISE.split())
_CONTRACTING = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}|contracting_dims = \[([\d, ]*)\] x|"
                          r"lhs_contracting_dimensions\"?(?: = |:)\[([\d, \"]*)\]")
_LIBRARY_PRODUCT = re.compile(r"__cublas(?!\$triangular)|__triton_gemm")
_TARGET = re.compile(r'call_target(?:_name = |=)"([^"]*)"|custom_call @"?([\w.$]+)')
_PLACEMENT = re.compile(r'_xla_buffer_placement ?= ?"(\w+)"')
_SORTED = re.compile(r"\bdimensions?(?: = |=\{)(\d+)")
_LENGTHS = re.compile(r"fft_length=\{([\d,]*)\}|\blength = (?:\[|array<i64: )([\d, ]*)")
_SIZES = "size|window_dimensions"
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)|"
                     r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")

# What operations and routines of libraries do to matrices; `EighTpu` takes their quarters.
_ROUTINES = {name: rule for rule, names in (
    (rules.CHOLESKY, "cholesky Cholesky potrf InvertDiagBlocksLowerTriangular "
                     "InvertDiagBlocksUpperTriangular"),
    (rules.EIG, "eig geev"), (rules.SCHUR, "gees"), (rules.EIGH, "Eigh heevd syevd"),
    (OfMatrices(lambda m, n, out: rules.EIGH.terms(2 * m, 2 * n, out)), "EighTpu"),
    (rules.HESSENBERG, "gehrd"), (rules.LU, "getrf LuDecomposition LuRealDecompositionBlock"),
    (OfMatrices(lambda *sizes: OF_COMPLEX * rules.LU.terms(*sizes)), "LuComplexDecompositionBlock"),
    (rules.REFLECTED, "ormqr unmqr"),
    (rules.REFLECTORS, "Qr QrDecompositionBlock ProductOfElementaryHouseholderReflectors geqp3 "
                       "geqrf orgqr ungqr"),
    (rules.SVD, "gesdd gesvd gesvdj gesvdp"), (rules.TRIDIAGONAL, "hetrd sytrd"),
    (rules.TRIANGULAR_SOLVE, "triangular_solve triangularSolve trsm"),
    (rules.TRIDIAGONAL_SOLVE, "gtsv gtsv2 tridiagonal_solve_perturbed")) for name in names.split()}
_LIBRARY = re.compile(
    r"^lapack_[sdcz]|^(?:__)?(?:cu|hip)(?:solver|blas|hybrid|sparse)?[_$]|_(?:real|comp)$|_ffi$")
_COMBINING = frozenset(("reduce", "reduce_window", "select_and_scatter", "scatter", "all_reduce",
                        "reduce_scatter"))


def arithmetic(operation: str, text: str, operands: Arrays, results: Arrays) -> float:
    """Arithmetic operations of one operation, as `pyjx.core.arithmetic` counts them.

    >>> arithmetic("dot", "lhs_contracting_dims={1}", hlo_arrays("f32[3,4] f32[4,5]"),
    ...            hlo_arrays("f32[3,5]"))
    120.0
    >>> arithmetic("stablehlo.add", "", tensors("tensor<3xf32>"), tensors("tensor<3xf32>"))
    3.0
    """
    name = plain(operation)
    if name in _ELEMENTWISE_NAMES:
        return sum([math.prod(shape) * _scale(element) for shape, element in results], 0.0)
    if not (operands and results):
        return 0.0
    (a, element), (result, _) = operands[0], results[0]  # behind it may be space to work in
    if target := target_of(name, text):
        name = "dot" if _LIBRARY_PRODUCT.match(target) else target
    if name == "sort":
        along = _numbers(_SORTED, text) or [-1]
        return math.prod(a) * math.log2(max(a[min(along[0], len(a) - 1)], 2)) if a else 0.0
    if name in ("top_k", "topk", "TopK"):
        return float(math.prod(a))
    if name == "fft":
        return 5.0 * math.prod(result) * math.log2(max(math.prod(_numbers(_LENGTHS, text)), 2))
    shapes = [shape for shape, _ in operands]
    if name == "convolution" and len(operands) > 1:
        amount = _convolution(text, shapes[0], shapes[1], result)
    elif name in ("dot", "dot_general"):
        amount = _product(text, shapes, result)
    else:
        rule = _ROUTINES.get(_LIBRARY.sub("", name))
        amount = rule.amount(a, shapes[-1]) if rule else 0.0  # solutions are like what comes last
    return amount * _scale(element)


def target_of(kind: str, text: str) -> str:
    """What a custom call calls; nothing of other operations."""
    found = _TARGET.search(text) if kind == "custom_call" else None
    return found[1] or found[2] if found else ""


def placed_on_host(text: str) -> bool | None:
    """Whether a custom call says of a value that it is on the host, or on a device; None of others.

    >>> placed_on_host('frontend_attributes={_xla_buffer_placement="pinned_host"}')
    True
    """
    found = _PLACEMENT.search(text) if "_xla_buffer_placement" in text else None
    return found[1] != "device" if found else None


def _scale(element: str) -> float:
    """How many operations on real numbers one on elements of such a type is."""
    return OF_COMPLEX if element.startswith("c") else 1.0


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    """The numbers that a text has where a pattern says; none without it."""
    found = pattern.search(text)
    return list(map(int, _DIGITS.findall(" ".join(filter(None, found.groups()))))) if found else []


def _product(text: str, operands: Sequence[Shape], result: Shape) -> float:
    out, k = float(math.prod(result)), 1.0
    if _CONTRACTING.search(text):
        dims = _numbers(_CONTRACTING, text)
        k = math.prod([operands[0][d] for d in dims if d < len(operands[0])])
    elif out:  # `stablehlo.dot`: (m k)(k n) / (m n) = k squared
        k = math.sqrt(math.prod(map(math.prod, operands[:2])) / out)
    return 2 * out * k


def combinations(operation: str, text: str, operands: Arrays, results: Arrays) -> Bodies | None:
    """How an operation runs its bodies on single elements; None if it is none that does.

    >>> combinations("reduce-window", "window={size=2x3 pad=0_0x1_1}", hlo_arrays("f32[4,4] f32[]"),
    ...              hlo_arrays("f32[3,4]"))
    Bodies(how=2, times=(60.0,))
    """
    name = plain(operation)
    if name not in _COMBINING or not operands or not results:
        return None
    sizes = [float(math.prod(shape)) for shape, _ in operands]
    out = float(math.prod(results[0][0]))
    times: tuple[float, ...] = (sum(sizes),)  # over devices, of each operand
    if name == "reduce":
        times = (max(sizes[0] - out, 0.0),)
    elif name == "reduce_window":
        (given, _), (made, _) = operands[0], results[0]
        n = len(made)
        axes = zip(made, _along(text, _SIZES, 1, n), given, _steps(text, n), strict=False)
        times = (joined_in_windows([(*sizes, *steps) for *sizes, steps in axes]),)
    elif name == "scatter":
        times = (sizes[-1],)
    elif name == "select_and_scatter":  # what is scattered comes second
        joined = math.prod(_along(text, _SIZES, 1, len(operands[0][0]))) - 1
        times = (sum(sizes[1:2]) * joined, sum(sizes[1:2]))
    if " applies " in text:  # the body has no rows
        times = (times[0] * _scale(results[0][1]),)
    return Bodies(APPLIED, times)


def _along(text: str, names: str, default: int, n: int, each: int = 1) -> list[int]:
    """What a text says of each of n axes under one of some names, or the first of several of it."""
    given = re.search(rf"\b(?:{names}) ?= ?(?:array<i64: |dense<)?"
                      r"(\[\[.*?\]\]|\[[^\]]*\]|[\dx_-]+(?:, -?\d+)*)", text)
    numbers = list(map(int, re.findall(r"-?\d+", given[1]))) if given else []
    numbers = numbers * each * n if len(numbers) == 1 else numbers  # the same for all
    return (numbers if len(numbers) == each * n else [default] * each * n)[::each]


def _steps(text: str, n: int) -> Iterator[tuple[int, int, int, int]]:
    """Along each axis the stride of windows, the padding before the operand, its dilation and that
    of the window."""
    return zip(_along(text, "stride|window_strides", 1, n), _along(text, "pad|padding", 0, n, 2),
               _along(text, "lhs_dilate|base_dilations", 1, n),
               _along(text, "rhs_dilate|window_dilations", 1, n), strict=True)


def _convolution(text: str, x: Shape, kernel: Shape, out: Shape) -> float:
    """As `pyjx.core.arithmetic.products` counts it."""
    found = _LABELS.search(text)
    sides = [re.findall(r"\w", side) for side in found.groups() if side] if found else []
    if [len(side) for side in sides] != [len(x), len(kernel), len(out)]:
        return 2.0 * math.prod(out) * math.prod(kernel)
    inner, of_kernel, outer = sides
    made = [products(out[outer.index(str(i))], kernel[of_kernel.index(str(i))],
                     x[inner.index(str(i))], *steps)
            for i, steps in enumerate(_steps(text, len(out) - 2))]
    others = out[outer.index("b")] * out[outer.index("f")]
    return 2.0 * others * kernel[of_kernel.index("i")] * math.prod(made)
