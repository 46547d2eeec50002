"""Types as StableHLO and HLO write them: how many bytes and elements their values have."""

from __future__ import annotations

import math
import re
from functools import lru_cache

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


@lru_cache(4096)
def hlo_arrays(text: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Shape and bits of an element of each array in a type of HLO.

    >>> hlo_arrays("(f32[8,64]{1,0}, s32[])")
    (((8, 64), 32), ((), 32))
    """
    return tuple([(tuple(map(int, _DIGITS.findall(dims))), _bits(element))
                  for element, dims in _HLO_ARRAY.findall(text)])


@lru_cache(4096)
def tensors(text: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Shape and bits of an element of each tensor in types of StableHLO; 1 for a size not known.

    >>> tensors("tensor<?x8xcomplex<f32>>, tensor<i1>")
    (((1, 8), 64), ((), 8))
    """
    return tuple([(tuple([1 if d == "?" else int(d) for d in dims.split("x")[:-1]]),
                   _bits(element)) for dims, element in _TENSOR.findall(text)])


def bytes_of(arrays: tuple[tuple[tuple[int, ...], int], ...]) -> int:
    """Bytes of some arrays.

    >>> bytes_of(hlo_arrays("f32[8,64]{1,0}")), bytes_of(hlo_arrays("s4[3]"))
    (2048, 2)
    """
    return sum([(math.prod(shape) * bits + 7) // 8 for shape, bits in arrays])
