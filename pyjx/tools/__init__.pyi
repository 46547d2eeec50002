# Written by `python -m pyjx.cli.stubs` from the table of pyjx.tools.

from pyjx.tools import colab_tpu as colab_tpu

__all__ = [
    "colab_tpu",
]
