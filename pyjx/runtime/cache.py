"""placeholder"""
from typing import Any
def entry_for(*args: Any) -> Any:
    return None
