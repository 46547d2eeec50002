"""Names of JAX that pyjx has not yet, and what to use meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

NAMES: dict[str, str] = {
    "pyjx":
        "collect_profile extend interpreters lib pmap reshard tools",
    "pyjx.experimental":
        "EArray array_serialization colocated_python compilation_cache "
        "compute_on custom_partitioning fused hijax jax2tf key_reuse "
        "mosaic overlap pallas primal_tangent_dtype profiler "
        "roofline scheduling_groups source_mapper "
        "thunky transfer xla_metadata",
    "pyjx.experimental.jet":
        "ZeroSeries ZeroTerm call_param_updaters def_comp def_deriv deflinear defzero deriv_prop "
        "fact jet2 jet_fun jet_subtrace linear_prop traceable zero_prop zero_series "
        "zero_term",
    "pyjx.experimental.rnn":
        "lstm_bwd lstm_fwd rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p",
    "pyjx.ffi":
        "build_ffi_lowering_function ffi_lowering",
    "pyjx.sharding":
        "auto_axes explicit_axes no_collectives reshard",
    "pyjx.lax":
        "psum_scatter_start",
}

# What serves meanwhile, and the names that it serves for.
SERVES: dict[str, str] = {
    "jax.vmap, on one device":
        "pyjx.pmap",
    "jax.device_put(x, device), which places an array on one device":
        "pyjx.reshard pyjx.sharding.reshard "
        "pyjx.sharding.auto_axes pyjx.sharding.explicit_axes "
        "pyjx.sharding.no_collectives",
    "jax.jit(f).lower(*args).as_text(), which is StableHLO":
        "pyjx.experimental.jax2tf",
    "the cache in the folder jax_compilation_cache_dir":
        "pyjx.experimental.compilation_cache",
    "jax.core":
        "pyjx.extend pyjx.interpreters",
    "jax.lax.psum_scatter":
        "pyjx.lax.psum_scatter_start",
    "jax.profiler":
        "pyjx.collect_profile pyjx.experimental.profiler",
    "jax.ffi.ffi_call":
        "pyjx.ffi.build_ffi_lowering_function pyjx.ffi.ffi_lowering",
    "jax.custom_batching.custom_vmap for rules of vmap":
        "pyjx.experimental.custom_partitioning",
    "jax.vjp of lstm":
        "pyjx.experimental.rnn.lstm_bwd pyjx.experimental.rnn.lstm_fwd",
}
INSTEAD: dict[str, str] = {name: said for said, names in SERVES.items() for name in names.split()}


def hint(package: str, name: str) -> str:
    """What to say of a name that a package has not: nothing, unless JAX has it.

    >>> hint("pyjx", "pmap")
    ': it is not there yet. Meanwhile use jax.vmap, on one device.'
    """
    if name not in NAMES.get(package, "").split():
        return ""
    instead = INSTEAD.get(f"{package}.{name}")
    return ": it is not there yet." + (f" Meanwhile use {instead}." if instead else "")


class ImportHint:
    """The last finder of modules: lets `import package.name` and `from package import name` say of
    a name that is not there yet what the attribute says."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> None:
        package, _, name = fullname.rpartition(".")
        said = hint(package, name)
        if said:
            # It has no attribute `name`: `from` passes over an error that names what it looks for.
            raise ModuleNotFoundError(f"cannot import {name!r} from {package!r}{said}")
