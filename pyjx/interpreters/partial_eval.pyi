# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.partial_eval.

from pyjx.compat.partial_evaluation import JaxprTracer as JaxprTracer
from pyjx.compat.partial_evaluation import PartialVal as PartialVal
from pyjx.compat.partial_evaluation import abstract_eval_fun as abstract_eval_fun
from pyjx.compat.partial_evaluation import close_jaxpr as close_jaxpr
from pyjx.compat.partial_evaluation import convert_constvars_jaxpr as convert_constvars_jaxpr
from pyjx.compat.partial_evaluation import custom_partial_eval_rules as custom_partial_eval_rules
from pyjx.compat.partial_evaluation import dce_jaxpr as dce_jaxpr
from pyjx.compat.partial_evaluation import dce_jaxpr_call_rule as dce_jaxpr_call_rule
from pyjx.compat.partial_evaluation import dce_jaxpr_closed_call_rule as dce_jaxpr_closed_call_rule
from pyjx.compat.partial_evaluation import dce_jaxpr_consts as dce_jaxpr_consts
from pyjx.compat.partial_evaluation import dce_rules as dce_rules
from pyjx.compat.partial_evaluation import lower_jaxpr as lower_jaxpr
from pyjx.compat.partial_evaluation import lower_jaxpr2 as lower_jaxpr2
from pyjx.compat.partial_evaluation import move_binders_to_back as move_binders_to_back
from pyjx.compat.partial_evaluation import new_eqn_recipe as new_eqn_recipe
from pyjx.compat.partial_evaluation import partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules
from pyjx.compat.partial_evaluation import partial_eval_jaxpr_nounits as partial_eval_jaxpr_nounits
from pyjx.compat.partial_evaluation import prune_closed_jaxpr_outputs as prune_closed_jaxpr_outputs
from pyjx.compat.partial_evaluation import trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic
from pyjx.compat.partial_evaluation import trace_to_jaxpr_nounits as trace_to_jaxpr_nounits
from pyjx.core.trace import DynamicJaxprTrace as DynamicJaxprTrace
from pyjx.core.trace import DynamicJaxprTracer as DynamicJaxprTracer

__all__ = [
    "JaxprTracer",
    "PartialVal",
    "abstract_eval_fun",
    "close_jaxpr",
    "convert_constvars_jaxpr",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule",
    "dce_jaxpr_consts",
    "dce_rules",
    "lower_jaxpr",
    "lower_jaxpr2",
    "move_binders_to_back",
    "new_eqn_recipe",
    "partial_eval_jaxpr_custom_rules",
    "partial_eval_jaxpr_nounits",
    "prune_closed_jaxpr_outputs",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
    "DynamicJaxprTrace",
    "DynamicJaxprTracer",
]
