# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.scheduling_groups.

from pyjx.engine.metadata import xla_metadata_call_p as xla_metadata_call_p
from pyjx.compat.lowering_rules import attr_get as attr_get
from pyjx.compat.lowering_rules import dce_jaxpr_xla_metadata_rule as dce_jaxpr_xla_metadata_rule
from pyjx.experimental.annotated_calls import scheduling_group as scheduling_group
from pyjx.experimental.annotated_calls import xla_metadata_call as xla_metadata_call

__all__ = [
    "xla_metadata_call_p",
    "attr_get",
    "dce_jaxpr_xla_metadata_rule",
    "scheduling_group",
    "xla_metadata_call",
]
