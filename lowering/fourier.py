"""Fourier transforms."""

from __future__ import annotations

from lowering.builder import Block, out_aval
from lowering.rules import rule
from lowering.shardings import cut_again, whole_along
from lowering.types import int_list, tensor_type
from pyjx.core.avals import SymbolicDim
from pyjx.core.jaxpr import JaxprEqn


@rule("fft", apart=True)
def _fft(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval, out = eqn.invars[0].aval, out_aval(eqn)
    for n in eqn.params["fft_lengths"]:
        if isinstance(n, SymbolicDim):
            raise NotImplementedError(
                f"fft along an axis of symbolic size {n}: StableHLO's operation has known lengths. "
                "Give that axis a size, or use padded data of one.")
    if not aval.size or not out.size:
        return b.constant(0, out)
    axes = range(aval.ndim - len(eqn.params["fft_lengths"]), aval.ndim)
    whole = whole_along(b, x, aval, axes, apart=True)
    result = b.line(f"stablehlo.fft {whole}, type = {eqn.params['fft_type'].name}, length = "
                    f"{int_list(eqn.params['fft_lengths'])} : ({tensor_type(aval)}) -> "
                    f"{tensor_type(out)}")
    return cut_again(b, result, x, out, axes) if aval.dtype == out.dtype else result
