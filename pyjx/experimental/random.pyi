# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.random.

from pyjx.experimental.stateful_random import StatefulPRNG as StatefulPRNG
from pyjx.experimental.stateful_random import stateful_rng as stateful_rng

__all__ = [
    "StatefulPRNG",
    "stateful_rng",
]
