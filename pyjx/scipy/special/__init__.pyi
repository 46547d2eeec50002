# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.special.

from pyjx.nn.normalization import logsumexp as logsumexp

__all__ = [
    "logsumexp",
]
