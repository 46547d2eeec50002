# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.hijax.

from pyjx.compat.hi_primitives import HiPrim as HiPrim
from pyjx.compat.hi_primitives import HiPrimitive as HiPrimitive
from pyjx.compat.hi_primitives import RefAccum as RefAccum
from pyjx.compat.hi_primitives import VJPHiPrimitive as VJPHiPrimitive
from pyjx.compat.hi_primitives import bdims_at_front as bdims_at_front
from pyjx.compat.hi_primitives import jvp_from_lin as jvp_from_lin
from pyjx.compat.hi_primitives import linearize_from_jvp as linearize_from_jvp
from pyjx.compat.hi_primitives import unmap_avals as unmap_avals
from pyjx.compat.hi_primitives import vjp_from_jvp as vjp_from_jvp
from pyjx.compat.hi_primitives import vjp_from_lin as vjp_from_lin
from pyjx.compat.hi_primitives import vmap_rule as vmap_rule
from pyjx.compat.hi_types import AvalMutableQDD as AvalMutableQDD
from pyjx.compat.hi_types import AvalQDD as AvalQDD
from pyjx.compat.hi_types import HiType as HiType
from pyjx.compat.hi_types import MutableHiType as MutableHiType
from pyjx.compat.hi_types import register_hitype as register_hitype
from pyjx.compat.lowering_rules import control_flow_allowed_effects as control_flow_allowed_effects
from pyjx.compat.values import aval_method as aval_method
from pyjx.compat.values import aval_property as aval_property
from pyjx.compat.rule_tables import instantiate_zeros as instantiate_zeros
from pyjx.core.avals import AbstractRef as AbstractRef
from pyjx.core.avals import AbstractValue as AbstractValue
from pyjx.core.avals import ShapedArray as ShapedArray
from pyjx.core.specs import HiPspec as HiPspec
from pyjx.core.specs import MappingSpec as MappingSpec
from pyjx.engine.tangents import Zero as Zero
from pyjx.engine.tangents import is_undefined_primal as is_undefined_primal
from pyjx.lax.references import TransformedRef as TransformedRef
from pyjx.transforms.custom_vjp import GradAccum as GradAccum
from pyjx.transforms.custom_vjp import NullAccum as NullAccum
from pyjx.transforms.custom_vjp import ValAccum as ValAccum

__all__ = [
    "HiPrim",
    "HiPrimitive",
    "RefAccum",
    "VJPHiPrimitive",
    "bdims_at_front",
    "jvp_from_lin",
    "linearize_from_jvp",
    "unmap_avals",
    "vjp_from_jvp",
    "vjp_from_lin",
    "vmap_rule",
    "AvalMutableQDD",
    "AvalQDD",
    "HiType",
    "MutableHiType",
    "register_hitype",
    "control_flow_allowed_effects",
    "aval_method",
    "aval_property",
    "instantiate_zeros",
    "AbstractRef",
    "AbstractValue",
    "ShapedArray",
    "HiPspec",
    "MappingSpec",
    "Zero",
    "is_undefined_primal",
    "TransformedRef",
    "GradAccum",
    "NullAccum",
    "ValAccum",
]
