"""`python -m emit_hlo`."""

from emit_hlo import command

command()
