"""Errors of memory that ran out: what asked for it, and which arrays there are, by their lines.

With the flag `jax_memory_limit` a program is not run whose peak does not fit beside the arrays of
the process, on CPU too.
"""

from __future__ import annotations

from typing import Any

from pyjx import configuration
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.lifetimes import Liveness, machine_of
from pyjx.core.passes.dce import dce
from pyjx.runtime.cuts import flattened
from pyjx.runtime.memory import CURES, largest, memory_of, refusal, table_of, table_on


def check(executable: Any, closed: ClosedJaxpr, label: str) -> None:
    """Refuse to run a program that does not fit beside the arrays of the process.

    Raises:
      JaxRuntimeError: it needs more than `jax_memory_limit` leaves.
    """
    memory = memory_of(executable.loaded) if configuration.memory_limit.value else None
    if memory is None:
        return
    refused = refusal(label, memory.in_all - memory.argument, executable.device)
    if refused is not None:
        raise completed(refused, closed, label, executable.device)


def completed(error: Exception, closed: ClosedJaxpr, label: str, device: Any) -> Exception:
    """An error of memory with the largest arrays of the process and of a program. One with a cause
    is that of a callback, whose own program it tells of."""
    if error.__cause__ is not None:
        return error
    if "memory space vmem" in str(error):
        return type(error)(
            f"{error}\nThe blocks of a kernel, those that it fetches ahead and its scratch space "
            "do not fit in a TPU's VMEM. Take smaller blocks, or more of it by "
            "pltpu.CompilerParams(vmem_limit_bytes=...).")
    machine = machine_of(device.platform)
    flat = dce(flattened(closed)).jaxpr
    program = largest(flat, Liveness(flat, machine), machine.sizes)
    return type(error)(f"{error}\n{table_on(device)}The largest arrays of {label} at its peak are\n"
                       f"{table_of(program)}\n{CURES} jit(..., memory_budget=...) computes values "
                       "of the forward pass again.")
