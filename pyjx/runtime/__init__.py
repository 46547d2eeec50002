"""The runtime: from program text to arrays on devices.

`backends` finds devices, `compile` turns text into loaded programs (with `cache`, on disk), `array`
is the array class, `sharding` says how arrays lie on devices, `device_put` moves data. `programs`
lowers and compiles a jaxpr, `executable` runs it on arguments, `dispatch` makes C++ callables of
that; `eager` runs single operations, `jit` and `stages` whole functions, `operations` the
library's own.
"""
