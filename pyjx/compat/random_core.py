"""`jax._src.random.core`: what functions of random numbers ask of a key.

A library that has keys of its own puts another `_check_prng_key` here, which makes keys of JAX of
them: all functions of `jax.random` use it from then on.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pyjx import random
from pyjx.lazy import own_dictionary
from pyjx.random.base import check_key as _check_prng_key  # noqa: F401


class _Checked(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever walks over all modules asks
            raise AttributeError(name)
        return getattr(random, name)

    def __setattr__(self, name: str, value: Any) -> None:
        old = getattr(self, name, None)
        super().__setattr__(name, value)
        if name == "_check_prng_key":
            for module in [m for m in sys.modules if m.startswith("pyjx.random.")]:
                names = own_dictionary(sys.modules[module])
                names.update({public: value for public, known in names.items() if known is old})


sys.modules[__name__].__class__ = _Checked
