# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.util.

from pyjx.experimental.sparse.formats import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from pyjx.experimental.sparse.formats import SparseEfficiencyError as SparseEfficiencyError
from pyjx.experimental.sparse.formats import SparseEfficiencyWarning as SparseEfficiencyWarning
from pyjx.experimental.sparse.formats import SparseInfo as SparseInfo

__all__ = [
    "CuSparseEfficiencyWarning",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
]
