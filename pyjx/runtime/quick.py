"""The cheapest way to compile the program of a single operation on CPU.

XLA's newer emitters make kernels through MLIR, which takes as long as all the rest: a product is
compiled in 25 ms with them and in 13 without. Single operations that the older ones, straight to
LLVM, make as fast are compiled by these. LLVM's first level of optimisation gives the speed of its
third to all single operations, and compiles them sooner, but for those on 8-bit floats; the third
unrolls loops of some sizes whole: `exp` of shape (32, 32) takes it 140 ms, the first 21.

In which order a sum of floats is taken depends on all of this, and on the processor's vectors. So
what adds up is compiled without any option, as programs are, and has their bits on every processor:
test suites compare functions with their compiled selves. Functions of single elements have the same
bits but for a few sizes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from pyjx import jaxlib_api

_FIRST_LEVEL = (("xla_cpu_parallel_codegen_split_count", 1),
                ("xla_backend_optimization_level", 1))
_OLDER_EMITTERS = (("xla_cpu_use_fusion_emitters", False),)

# Element by element; as fast on arrays of any size. Not here: atan2, cbrt, tan and the other
# functions that have code of their own in each, which differs in the last bits.
_ELEMENTWISE = """
    abs add and bitcast_convert broadcast_in_dim ceil clamp compare concatenate constant convert
    cosine count_leading_zeros divide dynamic_slice dynamic_update_slice erf exponential
    exponential_minus_one floor iota is_finite log log_plus_one logistic maximum minimum
    multiply negate not optimization_barrier or pad popcnt power remainder reshape return
    reverse round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic
    shift_right_logical sign sine slice sqrt square subtract tanh xor"""
# Slower on large arrays: by a fifth, and transposition, which takes four times as long.
_OTHERS = "gather reduce scatter sort transpose"

_elementwise = frozenset(_ELEMENTWISE.split())
_all = _elementwise.union(_OTHERS.split())
_SMALL = 4096  # elements, for which the time of a kernel does not count

_OPERATION = r"(?:stablehlo|chlo)\.(\w+)(?=[ (\"])"
# Types in which intermediate results are rounded, or products and sums contracted, elsewhere.
_OTHER_TYPE = "xf16>|<f16>|complex<"
_CHOSEN = "xla_cpu|xla_backend"  # the user's own flags, which these would overrule
# Compiled as programs are: `erf_inv` has other bits elsewhere, and floats of 8 bits, of which each
# operation is a dozen branches, take the first level ten seconds; so are sums and products of
# floats, by a name or by the region of a reduction.
_PLAIN = (r"chlo\.erf_inv|f8E|stablehlo\.reduce_window|(?:stablehlo\.(?:dot_general|convolution)"
         r"|applies stablehlo\.(?:add|multiply)"
         r'|"stablehlo\.reduce"[^}]*stablehlo\.(?:add|multiply))\b[^\n]*(?:f\d|complex<)')
_LONGEST = 1 << 15  # characters; in longer programs it pays to compile kernels side by side


def quick_options(text: str, avals: Sequence[Any], platform: str) -> tuple[tuple[str, Any], ...]:
    """The compiler options for a program of one operation; none where they would be seen.

    Args:
      text: the program.
      avals: of its arguments and results.
      platform: what it is compiled for.
    """
    if (platform != "cpu" or len(text) > _LONGEST or re.search(_PLAIN, text)
            or re.search(_CHOSEN, os.environ.get("XLA_FLAGS", ""))):
        return ()
    if not jaxlib_api.HAS_OLDER_CPU_EMITTERS or re.search(_OTHER_TYPE, text):
        return _FIRST_LEVEL
    small = all(aval.size <= _SMALL for aval in avals)
    same = _all if small else _elementwise
    if same.issuperset(re.findall(_OPERATION, text)):
        return _FIRST_LEVEL + _OLDER_EMITTERS
    return _FIRST_LEVEL
