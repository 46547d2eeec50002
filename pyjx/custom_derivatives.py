"""Functions with derivatives that the user gives, and what their rules work with."""

from __future__ import annotations

from pyjx.transforms.custom_linear import linear_call as linear_call
from pyjx.transforms.custom_rules import CustomVJPPrimal as CustomVJPPrimal
from pyjx.transforms.custom_rules import SymbolicZero as SymbolicZero
from pyjx.transforms.custom_rules import closure_convert as closure_convert
from pyjx.transforms.custom_rules import custom_gradient as custom_gradient
from pyjx.transforms.custom_rules import custom_jvp as custom_jvp
from pyjx.transforms.custom_rules import custom_jvp_call_p as custom_jvp_call_p
from pyjx.transforms.custom_rules import custom_vjp as custom_vjp
from pyjx.transforms.custom_rules import custom_vjp_call_p as custom_vjp_call_p
from pyjx.transforms.custom_rules import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from pyjx.transforms.custom_rules import zero_from_primal as zero_from_primal
