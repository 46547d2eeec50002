# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.cluster.

from pyjx.scipy.cluster import vq as vq

__all__ = [
    "vq",
]
