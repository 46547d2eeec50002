"""The work of the command `emit-hlo`, whose options the package `emit_hlo` reads."""
