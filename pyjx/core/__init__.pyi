# Written by `python -m pyjx.cli.stubs` from the table of pyjx.core.

from pyjx.compat.interpreters import Trace as Trace
from pyjx.core.avals import AbstractToken as AbstractToken
from pyjx.core.avals import AbstractValue as AbstractValue
from pyjx.core.avals import ShapedArray as ShapedArray
from pyjx.core.avals import abstract_token as abstract_token
from pyjx.core.avals import get_aval as get_aval
from pyjx.core.avals import aval_makers as pytype_aval_mappings
from pyjx.core.avals import is_valid_value as valid_jaxtype
from pyjx.core.check import check_jaxpr as check_jaxpr
from pyjx.compat.contexts import find_top_trace as find_top_trace
from pyjx.compat.contexts import get_opaque_trace_state as get_opaque_trace_state
from pyjx.compat.contexts import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from pyjx.compat.contexts import trace_ctx as trace_ctx
from pyjx.compat.contexts import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from pyjx.compat.contexts import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from pyjx.compat.contexts import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from pyjx.core.integers import max_dim as max_dim
from pyjx.core.integers import min_dim as min_dim
from pyjx.core.dtypes import tangent_dtype as primal_dtype_to_tangent_dtype
from pyjx.core.effects import Effect as Effect
from pyjx.core.effects import Effects as Effects
from pyjx.core.effects import NamedAxisEffect as NamedAxisEffect
from pyjx.core.effects import no_effects as no_effects
from pyjx.core.jaxpr import Atom as Atom
from pyjx.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from pyjx.core.jaxpr import DebugInfo as DebugInfo
from pyjx.core.jaxpr import DropVar as DropVar
from pyjx.core.jaxpr import Jaxpr as Jaxpr
from pyjx.core.jaxpr import JaxprEqn as JaxprEqn
from pyjx.core.jaxpr import Literal as Literal
from pyjx.core.jaxpr import ParamDict as ParamDict
from pyjx.core.jaxpr import Var as Var
from pyjx.core.jaxpr import jaxprs_in_params as jaxprs_in_params
from pyjx.core.jaxpr import new_jaxpr_eqn as new_jaxpr_eqn
from pyjx.compat.open_primitives import CallPrimitive as CallPrimitive
from pyjx.core.primitive import Primitive as Primitive
from pyjx.core.printer import JaxprPpContext as JaxprPpContext
from pyjx.core.printer import JaxprPpSettings as JaxprPpSettings
from pyjx.core.evaluation import eval_jaxpr as eval_jaxpr
from pyjx.core.evaluation import jaxpr_as_fun as jaxpr_as_fun
from pyjx.core.scalars import literal_types as literalable_types
from pyjx.core.trace import Tracer as Tracer
from pyjx.core.trace import concrete_or_error as concrete_or_error
from pyjx.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
from pyjx.core.trace import ensure_compile_time_eval as eval_context
from pyjx.core.trace import is_concrete as is_concrete
from pyjx.errors import JaxprTypeError as JaxprTypeError
from pyjx.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation

__all__ = [
    "Trace",
    "AbstractToken",
    "AbstractValue",
    "ShapedArray",
    "abstract_token",
    "get_aval",
    "pytype_aval_mappings",
    "valid_jaxtype",
    "check_jaxpr",
    "find_top_trace",
    "get_opaque_trace_state",
    "nonempty_axis_env_DO_NOT_USE",
    "trace_ctx",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "max_dim",
    "min_dim",
    "primal_dtype_to_tangent_dtype",
    "Effect",
    "Effects",
    "NamedAxisEffect",
    "no_effects",
    "Atom",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "ParamDict",
    "Var",
    "jaxprs_in_params",
    "new_jaxpr_eqn",
    "CallPrimitive",
    "Primitive",
    "JaxprPpContext",
    "JaxprPpSettings",
    "eval_jaxpr",
    "jaxpr_as_fun",
    "literalable_types",
    "Tracer",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_context",
    "is_concrete",
    "JaxprTypeError",
    "InconclusiveDimensionOperation",
]
