"""From a lowered program to its executable."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import compress
from typing import Any

from lowering.program import LoweredProgram
from pyjx import configuration, jaxlib_api
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.monitoring import timed
from pyjx.runtime import compile as compiler
from pyjx.runtime import ledger
from pyjx.runtime.executable import DescribedExecutable, Executable
from pyjx.runtime.placement import Placement
from pyjx.runtime.quick import quick_options
from pyjx.runtime.small_floats import check_small_floats

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
        from pyjx.runtime import calling  # callbacks, which few programs have

        executable, functions = calling.CallingExecutable, calling.host_functions(
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
