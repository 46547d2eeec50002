# Written by `python -m pyjx.cli.stubs` from the table of pyjx.export.

from pyjx.core.symbolic.expressions import is_symbolic_dim as is_symbolic_dim
from pyjx.core.symbolic.scopes import SymbolicScope as SymbolicScope
from pyjx.export.reading import deserialize as deserialize
from pyjx.export.exported import DisabledSafetyCheck as DisabledSafetyCheck
from pyjx.export.exported import Exported as Exported
from pyjx.export.exported import maximum_supported_calling_convention_version as maximum_supported_calling_convention_version
from pyjx.export.exported import minimum_supported_calling_convention_version as minimum_supported_calling_convention_version
from pyjx.export.exporting import default_export_platform as default_export_platform
from pyjx.export.exporting import export as export
from pyjx.export.exporting import symbolic_args_specs as symbolic_args_specs
from pyjx.export.exporting import symbolic_dim_bounds as symbolic_dim_bounds
from pyjx.export.exporting import symbolic_shape as symbolic_shape
from pyjx.export.trees import register_namedtuple_serialization as register_namedtuple_serialization
from pyjx.export.trees import register_pytree_node_serialization as register_pytree_node_serialization

__all__ = [
    "is_symbolic_dim",
    "SymbolicScope",
    "deserialize",
    "DisabledSafetyCheck",
    "Exported",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "default_export_platform",
    "export",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
]
