"""From a lowered program to its executable.

The program of a single operation on CPU is compiled in the cheapest way. XLA's newer emitters make
kernels through MLIR, which takes as long as all the rest: a product is compiled in 25 ms with them
and in 13 without. Single operations that the older ones, straight to LLVM, make as fast are
compiled by these. LLVM's first level of optimisation gives the speed of its third to all single
operations, and compiles them sooner, but for those on 8-bit floats; the third unrolls loops of some
sizes whole: `exp` of shape (32, 32) takes it 140 ms, the first 21.

In which order a sum of floats is taken depends on all of this, and on the processor's vectors. So
what adds up is compiled without any option, as programs are, and has their bits on every processor:
test suites compare functions with their compiled selves. Functions of single elements have the same
bits but for a few sizes.

With floats of 6 bits XLA's compiler for CPU moves them and converts to them; asked for anything
else it fails, or ends the process, so programs are looked through first."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import compress
from typing import Any

from lowering.program import LoweredProgram
from pyjx import configuration, jaxlib_api
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from pyjx.monitoring import timed
from pyjx.runtime import compile as compiler
from pyjx.runtime import ledger
from pyjx.runtime.executable import DescribedExecutable, Executable
from pyjx.runtime.placement import Placement

_MOVES = frozenset([
    "abs", "broadcast_in_dim", "cond", "copy", "dynamic_slice", "dynamic_update_slice", "gather",
    "jit", "pad", "reshape", "rev", "select_n", "slice", "squeeze", "transpose"])


_CONSTANT = re.compile(r"stablehlo\.constant .*(f6E\w+)>")


def check_small_floats(text: str, jaxpr: Jaxpr) -> None:
    """Refuse a program for CPU, of which `text` is the StableHLO, that would end the process.

    Raises:
      TypeError: it does more with floats of 6 bits than the compiler can.
    """
    if "f6E" in text:
        _check(jaxpr)
        if constant := _CONSTANT.search(text):
            raise _refused("a constant", constant[1])


def _refused(what: str, dtype: Any) -> TypeError:
    return TypeError(f"{what} of {dtype} is not supported on CPU: jaxlib "
                     f"{jaxlib_api.JAXLIB_RELEASE} has no code for it. Compute in another dtype, "
                     "such as float8_e4m3fn or float32.")


def _check(jaxpr: Jaxpr) -> None:
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        read, made = ([a.dtype for a in avals if "float6_" in str(getattr(a, "dtype", ""))]
                      for avals in ([x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]))
        known = jaxlib_api.CPU_MOVES_6_BITS and (
            name in _MOVES or (name == "convert_element_type" and not read))
        if (read or made) and not known:
            raise _refused(name, (read or made)[0])
    for inner in subjaxprs(jaxpr):
        _check(inner)


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


_ADDRESSABLE = 1 << 47  # bytes


def _check_results_fit(closed: ClosedJaxpr) -> None:
    """Raise what running would, before jaxlib 0.12 divides by zero compiling so long a range."""
    n_bytes = sum([a.size * a.dtype.itemsize for a in closed.out_avals if hasattr(a, "size")])
    if n_bytes >= _ADDRESSABLE:
        raise jaxlib_api.JaxRuntimeError(
            f"RESOURCE_EXHAUSTED: Out of memory allocating {n_bytes} bytes.")


def compile_lowered(source: LoweredProgram, closed: ClosedJaxpr, name: str, compiler_options: Any,
                    placement: Placement, quick: bool) -> Executable:
    """The executable of `closed`, whose program is `source`; `quick` says that it is a single
    operation, which is to be compiled in little time."""
    _check_results_fit(closed)
    device = placement.devices[0]
    if device.platform == "cpu":
        check_small_floats(source.text, closed.jaxpr)
    if quick:
        compiler_options = quick_options(source.text, closed.in_avals + closed.out_avals,
                                         device.platform)
    options = {**_disabled_passes(source.text, device.platform), **dict(compiler_options)}
    executable: Any = DescribedExecutable if jaxlib_api.is_compile_only(device.client) \
        else Executable
    functions: Sequence[Any] = ()
    if source.host_calls:
        from pyjx.runtime import host_calls  # callbacks, which few programs have

        executable, functions = host_calls.CallingExecutable, host_calls.host_functions(
            source, device.client)
    in_shardings = [*[placement] * len(source.const_args),
                    *compress(placement.in_shardings, source.kept)] \
        if placement.mesh is not None else ()
    with timed("/jax/core/compile/backend_compile_duration", name) as time:
        loaded, from_disk = compiler.compile_or_load(
            source, devices=placement.devices, compiler_options=options or None,
            host_callbacks=functions,
            propagate_to_parameters=[s is None for s in in_shardings],
            propagate_to_outputs=[s is None for s in placement.out_shardings])
    ledger.note_compiled(closed, name, device, options, from_disk, time.seconds)
    made: Executable = executable(loaded, closed, source, placement)
    made.from_disk = options if from_disk else None
    for inspection in source.inspections:
        inspection.callback(made.sharding if inspection.chosen is None
                            else placement.named(inspection.chosen, inspection.ndim))
    return made


def _disabled_passes(text: str, platform: str) -> dict[str, str]:
    """The compiler option that names the passes which are to be left out, if there are any: the one
    by which XLA would look through optimization barriers, and what flags say.

    Barriers are looked through where the program has loops or branches: the code of small ones is
    made in a way that does not know barriers, and XLA would abort the process.
    """
    option = "xla_disable_hlo_passes"
    if option in os.environ.get("XLA_FLAGS", ""):
        return {}
    passes = [] if configuration.compiler_enable_remat_pass.value else ["rematerialization"]
    if (jaxlib_api.CPU_BARRIER_PASS is not None and platform == "cpu"
            and "stablehlo.optimization_barrier" in text
            and "stablehlo.while" not in text and "stablehlo.case" not in text):
        passes.append(jaxlib_api.CPU_BARRIER_PASS)
    return {option: ",".join(passes)} if passes else {}
