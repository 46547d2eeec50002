# Written by `python -m pyjx.cli.stubs` from the table of pyjx.ad_checkpoint.

from pyjx.engine.primitives import name_p as name_p
from pyjx.engine.residuals import Offloadable as Offloadable
from pyjx.engine.residuals import Recompute as Recompute
from pyjx.engine.residuals import Saveable as Saveable
from pyjx.transforms.checkpointing import checkpoint as checkpoint
from pyjx.transforms.checkpointing import checkpoint_name as checkpoint_name
from pyjx.transforms.checkpointing import checkpoint_name_fwd as checkpoint_name_fwd
from pyjx.transforms.checkpointing import checkpoint_policies as checkpoint_policies
from pyjx.transforms.checkpointing import print_saved_residuals as print_saved_residuals
from pyjx.transforms.checkpointing import remat as remat

__all__ = [
    "name_p",
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_name_fwd",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]
