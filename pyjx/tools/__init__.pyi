# Written by `python -m pyjx.cli.stubs` from the table of pyjx.tools.

from types import ModuleType as _ModuleType
from pyjx.tools import colab_tpu as colab_tpu
from pyjx.tools import jax_to_ir as jax_to_ir

pgo_nsys_converter: _ModuleType

__all__ = [
    "colab_tpu",
    "jax_to_ir",
    "pgo_nsys_converter",
]
