# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.ad.

from pyjx.compat.rule_tables import defbilinear as defbilinear
from pyjx.compat.rule_tables import defjvp as defjvp
from pyjx.compat.rule_tables import defjvp2 as defjvp2
from pyjx.compat.rule_tables import deflinear as deflinear
from pyjx.compat.rule_tables import deflinear2 as deflinear2
from pyjx.compat.rule_tables import get_primitive_transpose as get_primitive_transpose
from pyjx.compat.rule_tables import instantiate_zeros as instantiate_zeros
from pyjx.compat.rule_tables import primitive_jvps as primitive_jvps
from pyjx.compat.rule_tables import primitive_transposes as primitive_transposes
from pyjx.compat.rule_tables import zeros_like_aval as zeros_like_aval
from pyjx.compat.partial_evaluation import backward_pass as backward_pass
from pyjx.compat.partial_evaluation import jvp as jvp
from pyjx.compat.partial_evaluation import jvp_jaxpr as jvp_jaxpr
from pyjx.compat.partial_evaluation import linearize as linearize
from pyjx.engine.forward import JVPTrace as JVPTrace
from pyjx.engine.forward import JVPTracer as JVPTracer
from pyjx.engine.tangents import UndefinedPrimal as UndefinedPrimal
from pyjx.engine.tangents import Zero as Zero
from pyjx.engine.tangents import add_tangents as add_jaxvals
from pyjx.engine.tangents import add_any_p as add_jaxvals_p
from pyjx.engine.tangents import add_tangents as add_tangents
from pyjx.engine.tangents import is_undefined_primal as is_undefined_primal

__all__ = [
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
    "backward_pass",
    "jvp",
    "jvp_jaxpr",
    "linearize",
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "is_undefined_primal",
]
