"""What a program shows that ends with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyjx.core import advice


def mistake(call: Callable[[], Any]) -> str:
    """The message with its notes, as a program that ends with the error shows it. Faults in what
    advises are raised, which programs are spared."""
    with pytest.raises(Exception) as caught:
        call()
    for advise in (advice.complete, advice.note_leaf, advice.note_body):
        advise(caught.value)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
