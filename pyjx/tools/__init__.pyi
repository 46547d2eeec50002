# Written by `python -m pyjx.cli.stubs` from the table of pyjx.tools.

from pyjx.tools import colab_tpu as colab_tpu
from pyjx.tools import jax_to_ir as jax_to_ir

__all__ = [
    "colab_tpu",
    "jax_to_ir",
]
