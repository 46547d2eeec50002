# Written by `python -m pyjx.cli.stubs` from the table of pyjx.core.

from pyjx.core.avals import AbstractToken as AbstractToken
from pyjx.core.avals import AbstractValue as AbstractValue
from pyjx.core.avals import ShapedArray as ShapedArray
from pyjx.core.avals import abstract_token as abstract_token
from pyjx.core.avals import get_aval as get_aval
from pyjx.core.check import JaxprTypeError as JaxprTypeError
from pyjx.core.check import check_jaxpr as check_jaxpr
from pyjx.core.dimensions import max_dim as max_dim
from pyjx.core.dimensions import min_dim as min_dim
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
from pyjx.core.primitive import Primitive as Primitive
from pyjx.core.trace import Trace as Trace
from pyjx.core.trace import Tracer as Tracer
from pyjx.core.trace import concrete_or_error as concrete_or_error
from pyjx.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
from pyjx.core.trace import ensure_compile_time_eval as eval_context
from pyjx.core.trace import eval_jaxpr as eval_jaxpr
from pyjx.core.trace import is_concrete as is_concrete
from pyjx.core.trace import jaxpr_as_fun as jaxpr_as_fun

__all__ = [
    "AbstractToken",
    "AbstractValue",
    "ShapedArray",
    "abstract_token",
    "get_aval",
    "JaxprTypeError",
    "check_jaxpr",
    "max_dim",
    "min_dim",
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
    "Primitive",
    "Trace",
    "Tracer",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "is_concrete",
    "jaxpr_as_fun",
]
