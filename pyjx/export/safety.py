"""What is checked of a program that is to run elsewhere, and how a check is switched off."""

from __future__ import annotations

import re
from collections.abc import Sequence

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

# Foreign functions that later versions of XLA and jaxlib keep.
_GUARANTEED = re.compile(
    r"(lapack_[a-z0-9]+_ffi|tridiagonal_solve_perturbed_ffi|cu(solver|blas|sparse)?_\w+"
    r"|hip(solver|blas|sparse)?_\w+|ApproxTopK|TopK|Qr|Eigh|LuDecomposition|X64\w+|Sharding"
    r"|SPMD\w+|ProductOfElementaryHouseholderReflectors|annotate_device_placement|dce_sink"
    r"|shape_assertion|stablehlo\.dynamic_\w+|mhlo\.\w+|tpu_custom_call|__gpu\$\w+"
    r"|AllocateBuffer|PartialReduce)")


class DisabledSafetyCheck:
    """A check of `export` that is not to be made.

    >>> from pyjx import export
    >>> export.DisabledSafetyCheck.custom_call("my_function")
    DisabledSafetyCheck.custom_call('my_function')
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl  # jax's pickles fill it by this name

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let the program be called on platforms that it was not exported for."""
        return DisabledSafetyCheck("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let the program call the foreign function of this name, though nothing says that it will
        stay as it is; `ALL` stands for every one."""
        return DisabledSafetyCheck(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the foreign function that this allows; None for other checks."""
        kind, colon, name = self._impl.partition(":")
        return name if colon and kind == "custom_call" else None

    def __str__(self) -> str:
        return self._impl

    def __repr__(self) -> str:
        name = self.is_custom_call()
        return "DisabledSafetyCheck.platform()" if name is None else \
            f"DisabledSafetyCheck.custom_call({name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


_CUSTOM_CALL = re.compile(r"stablehlo\.custom_call @([\w.$]+)[^\n]*")


def check_custom_calls(text: str, disabled: Sequence[DisabledSafetyCheck]) -> None:
    """Raise ValueError where a program calls what may change from version to version."""
    allowed = [d.is_custom_call() for d in disabled]
    bad = [m for m in _CUSTOM_CALL.finditer(text)
           if not {m[1], "ALL"} & {*allowed} and not _GUARANTEED.fullmatch(m[1])]
    if not bad:
        return
    lines = "\n".join([m[0] for m in bad[:5]])
    names = [d for d in allowed if d]
    already = (f"disabled for the targets {names}" if names else
               "not disabled for any target")
    raise ValueError(
        "Cannot serialize code with custom calls whose targets have no compatibility guarantees. "
        f"Examples are:\n{lines}\nThe custom call safety check was {already}. You can disable it "
        "for a target by adding jax.export.DisabledSafetyCheck.custom_call('"
        f"{bad[0][1]}') to disabled_checks.")
