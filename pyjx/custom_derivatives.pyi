# Written by `python -m pyjx.cli.stubs` from the table of pyjx.custom_derivatives.

from pyjx.engine.custom_derivative_calls import SymbolicZero as SymbolicZero
from pyjx.engine.custom_derivative_calls import custom_jvp_call_p as custom_jvp_call_p
from pyjx.engine.custom_derivative_calls import custom_vjp_call_p as custom_vjp_call_p
from pyjx.engine.custom_derivative_calls import zero_from_primal as zero_from_primal
from pyjx.engine.remat_calls import remat_opt_p as remat_opt_p
from pyjx.transforms.custom_gradient import closure_convert as closure_convert
from pyjx.transforms.custom_gradient import custom_gradient as custom_gradient
from pyjx.transforms.custom_gradient import linear_call as linear_call
from pyjx.transforms.custom_jvp import custom_jvp as custom_jvp
from pyjx.transforms.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from pyjx.transforms.custom_vjp import custom_vjp as custom_vjp
from pyjx.transforms.custom_vjp import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values

__all__ = [
    "SymbolicZero",
    "custom_jvp_call_p",
    "custom_vjp_call_p",
    "zero_from_primal",
    "remat_opt_p",
    "closure_convert",
    "custom_gradient",
    "linear_call",
    "custom_jvp",
    "CustomVJPPrimal",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
]
