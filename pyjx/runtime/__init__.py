"""The runtime: from program text to arrays on devices.

`backends` finds devices, `compile` turns text into executables (with `cache`, on disk), `array`
is the array class, `sharding` says how arrays lie on devices, `device_put` moves data, `dispatch`
runs single operations, `jit` and `stages` whole functions.
"""
