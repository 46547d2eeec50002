# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.core.

from pyjx.extend.core import primitives as primitives
from pyjx.core.avals import AbstractToken as AbstractToken
from pyjx.core.avals import Token as Token
from pyjx.core.avals import get_aval as get_aval
from pyjx.core.avals import is_valid_value as is_valid_value
from pyjx.core.check import check_jaxpr as check_jaxpr
from pyjx.compat.contexts import TraceTag as TraceTag
from pyjx.compat.contexts import find_top_trace as find_top_trace
from pyjx.compat.contexts import get_opaque_trace_state as get_opaque_trace_state
from pyjx.compat.contexts import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from pyjx.compat.contexts import set_current_trace as set_current_trace
from pyjx.compat.contexts import take_current_trace as take_current_trace
from pyjx.compat.contexts import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from pyjx.compat.contexts import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from pyjx.compat.contexts import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from pyjx.core.effects import Effect as Effect
from pyjx.core.effects import Effects as Effects
from pyjx.core.effects import no_effects as no_effects
from pyjx.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from pyjx.core.jaxpr import DebugInfo as DebugInfo
from pyjx.core.jaxpr import DropVar as DropVar
from pyjx.core.jaxpr import Jaxpr as Jaxpr
from pyjx.core.jaxpr import JaxprEqn as JaxprEqn
from pyjx.core.jaxpr import Literal as Literal
from pyjx.core.jaxpr import Var as Var
from pyjx.core.jaxpr import jaxprs_in_params as jaxprs_in_params
from pyjx.core.jaxpr import new_jaxpr_eqn as new_jaxpr_eqn
from pyjx.core.jaxpr import subjaxprs as subjaxprs
from pyjx.core.evaluation import jaxpr_as_fun as jaxpr_as_fun
from pyjx.core.trace import concrete_or_error as concrete_or_error
from pyjx.compat.open_primitives import CallPrimitive as CallPrimitive
from pyjx.compat.open_primitives import Primitive as Primitive
from pyjx.compat.open_primitives import call_impl as call_impl
from pyjx.compat.open_primitives import create_call_primitive as create_call_primitive
from pyjx.compat.open_primitives import eval_jaxpr_transpose as eval_jaxpr_transpose
from pyjx.compat.open_primitives import register_call_primitive_rules as register_call_primitive_rules
from pyjx.compat.values import array_types as array_types
from pyjx.compat.values import gensym as gensym
from pyjx.compat.values import mapped_aval as mapped_aval
from pyjx.compat.values import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from pyjx.compat.values import unmapped_aval as unmapped_aval
from pyjx.compat.values import valid_jaxtype as valid_jaxtype
from pyjx.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from pyjx.errors import JaxprTypeError as JaxprTypeError

__all__ = [
    "primitives",
    "AbstractToken",
    "Token",
    "get_aval",
    "is_valid_value",
    "check_jaxpr",
    "TraceTag",
    "find_top_trace",
    "get_opaque_trace_state",
    "nonempty_axis_env_DO_NOT_USE",
    "set_current_trace",
    "take_current_trace",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "Effect",
    "Effects",
    "no_effects",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Var",
    "jaxprs_in_params",
    "new_jaxpr_eqn",
    "subjaxprs",
    "jaxpr_as_fun",
    "concrete_or_error",
    "CallPrimitive",
    "Primitive",
    "call_impl",
    "create_call_primitive",
    "eval_jaxpr_transpose",
    "register_call_primitive_rules",
    "array_types",
    "gensym",
    "mapped_aval",
    "primal_dtype_to_tangent_dtype",
    "unmapped_aval",
    "valid_jaxtype",
    "InconclusiveDimensionOperation",
    "JaxprTypeError",
]
