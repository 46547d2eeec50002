"""Programs as text with places in the user's source, as the flags want them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyjx import configuration

if TYPE_CHECKING:
    from lowering.program import LoweredProgram


def located_text(program: LoweredProgram, names_results: bool = False) -> str:
    """The text of a program with its operations' names and places, and its results' names."""
    full = configuration.include_full_tracebacks_in_locations.value
    return program.located_text(
        configuration.traceback_in_locations_limit.value if full else 1,
        configuration.hlo_source_file_canonicalization_regex.value, names_results)
