"""`jax._src.earray`: arrays of extended dtypes."""

from __future__ import annotations

from typing import Any


class EArray:
    """An array of an extended dtype over one of its data.

    Raises:
      NotImplementedError: extended dtypes are those of random keys here.
    """

    def __init__(self, aval: Any, data: Any) -> None:
        raise NotImplementedError(f"EArray: there are no arrays of type {aval}; extended dtypes "
                                  "are those of random keys")
