"""Products of sparse matrices on CPU: jaxlib's wrapper of Eigen's."""

from __future__ import annotations

from lowering.builder import Block, in_avals, out_aval
from lowering.rules import rule
from pyjx.core.jaxpr import JaxprEqn


@rule("csr_product", platform="cpu")
def _csr_product(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return b.custom_call("cpu_csr_sparse_dense_ffi", operands, in_avals(eqn), [out_aval(eqn)],
                         family="sparse")
