# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.cluster.vq.

from pyjx.scipy.clustering import vq as vq

__all__ = [
    "vq",
]
