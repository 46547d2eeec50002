"""What a program shows that ends with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyjx.core import tracebacks


def mistake(call: Callable[[], Any]) -> str:
    """The message with its notes, as a program that ends with the error shows it."""
    with pytest.raises(Exception) as caught:
        call()
    tracebacks._advise(caught.value)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
