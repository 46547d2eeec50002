"""Names of JAX that pyjx has not yet, and what to use meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

NAMES: dict[str, str] = {
    "pyjx":
        "Ref Shard collect_profile distributed empty_ref "
        "extend free_ref freeze get_abstract_mesh get_mesh "
        "interpreters lib make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays make_mesh memory new_ref "
        "pmap ref reshard set_mesh shard_map sharding smap tools "
        "use_abstract_mesh",
    "pyjx.experimental":
        "EArray array_serialization buffer_callback colocated_python compilation_cache "
        "compute_on custom_partitioning fused hijax jax2tf key_reuse layout "
        "mesh_utils mosaic multihost_utils overlap pallas pjit primal_tangent_dtype profiler "
        "random roofline scheduling_groups serialize_executable shard_map source_mapper sparse "
        "thunky topologies transfer xla_metadata",
    "pyjx.lax":
        "psum_scatter_start sharding_constraint_p with_sharding_constraint",
}

# What serves meanwhile, where something does.
INSTEAD: dict[str, str] = {
    "pyjx.pmap": "jax.vmap, on one device",
}


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
