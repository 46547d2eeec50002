"""What libraries import of JAX beyond its public names, over pyjx's own ideas.

Under the alias `jax._src` is this package, and a table says what each of its modules is.
`jax.extend` and `jax.interpreters` are tables, too, of names that modules here define.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyjx.compat.given_members  # noqa: F401  # which gives members to classes
from pyjx.guards import guard
from pyjx.lazy import loaded, place_of_table

# Where the names of each module of `jax._src` are. One module of pyjx is that module itself. Of
# several, the first that has a name gives it; `module:a,b=c` has these alone, `c` by the name `b`.
MODULES = {
    "ad_checkpoint": "pyjx.ad_checkpoint pyjx.transforms.checkpointing",
    "ad_util": "pyjx.lax.convert pyjx.custom_derivatives pyjx.interpreters.ad",
    "api": "pyjx pyjx.core.dtypes:_dtype=dtype pyjx.extend.backend:clear_backends",
    "api_util": "pyjx.api_util",
    "array": "pyjx.runtime.array pyjx",
    "buffer_callback": "pyjx.experimental.buffer_callback",
    "callback": "pyjx.experimental pyjx",
    "checkify": "pyjx.experimental.checkify pyjx.compat.callables:Out",
    "clusters": "pyjx.compat.launchers",
    "compilation_cache": "pyjx.experimental.compilation_cache.compilation_cache "
                         "pyjx.runtime.cache:CacheVerificationError",
    "compiler": "pyjx.runtime.compile pyjx.extend.backend:get_compile_options",
    "compute_on": "pyjx.experimental.compute_on",
    "config": "pyjx.configuration",
    "core": "pyjx.extend.core pyjx.core pyjx.extend.core.primitives "
            "pyjx.compat.contexts:OpaqueTraceState,TracingContext,trace_ctx,trace_state_clean "
            "pyjx.core.trace:EvalTrace=EagerTrace pyjx.runtime.executable:physical_aval "
            "pyjx.runtime.abstract:ShapeDtypeStruct pyjx.core.specs:ManualAxisType "
            "pyjx.core.places:MemorySpace=Space pyjx.errors "
            "pyjx.core.forbidden:ForbiddenCollectiveError "
            "pyjx.compat.pickles:ArrayRefImpl=StateOfJax pyjx:typeof "
            "pyjx.ref:Ref,empty_ref,free_ref,freeze,new_ref "
            "pyjx.api_util:shaped_abstractify pyjx.experimental.hijax:aval_method,aval_property "
            "pyjx.extend.core:SetCurrentTraceContextManager=set_current_trace,"
            "TakeCurrentTraceContextManager=take_current_trace," + ",".join(
                [f"{name}={name}_DO_NOT_USE" for name in (
                    "nonempty_axis_env", "unsafe_am_i_under_a_jit", "unsafe_am_i_under_a_vmap",
                    "unsafe_get_axis_names")]),
    "cudnn.fused_attention_stablehlo": "pyjx.compat.attention",
    "custom_batching": "pyjx.custom_batching",
    "custom_derivatives": "pyjx.custom_derivatives pyjx",
    "custom_partitioning": "pyjx.experimental.custom_partitioning",
    "custom_partitioning_sharding_rule": "pyjx.experimental.custom_partitioning",
    "debugger.core": "pyjx.debug",
    "debugging": "pyjx.debug pyjx.debug:debug_callback=callback,debug_print=print",
    "dispatch": "pyjx.compat.open_primitives:apply_primitive "
                "pyjx.runtime.host_calls:wait_for_tokens=effects_barrier",
    "distributed": "pyjx.distributed pyjx.runtime.processes:global_state=group",
    "dtypes": "pyjx.compat.values:DType,_jax_types,supports_inf pyjx.numpy:finfo,iinfo pyjx.dtypes "
              "pyjx.core.dtypes pyjx.experimental:primal_tangent_dtype",
    "earray": "pyjx.experimental.earray",
    "dlpack": "pyjx.dlpack",
    "effects": "pyjx.extend.core:Effect",
    "environment_info": "pyjx:print_environment_info",
    "export._export": "pyjx.export",
    "export.shape_poly": "pyjx.export pyjx.errors:InconclusiveDimensionOperation "
                         "pyjx.core.symbolic.solving:UnexpectedDimVar",
    "ffi": "pyjx.ffi",
    "extend.random": "pyjx.extend.random",
    "flatten_util": "pyjx.flatten_util pyjx.compat.pickles:unravel_pytree,_unravel_list,"
                    "_unravel_list_single_dtype",
    "flattree": "pyjx.compat.callables",
    "hijax": "pyjx.experimental.hijax",
    "image.scale": "pyjx.image",
    "indexing": "pyjx.core.integers:Slice,ds,dslice=ds",
    "interpreters": "pyjx.interpreters",
    **dict.fromkeys(("lax", *[f"lax.{name}" for name in (
        "ann", "control_flow", "control_flow.conditionals", "control_flow.loops",
        "control_flow.solves", "convolution", "fft", "lax", "other", "parallel", "scaled_dot",
        "slicing", "special", "windowed_reductions")]), "pyjx.lax"),
    "lax.linalg": "pyjx.lax.linalg",
    "layout": "pyjx.core.layouts pyjx.experimental.array_placement "
              "pyjx.compat.pickles:AutoLayoutSingleton",
    "lax.eval_jaxpr": "pyjx.extend.core "
                      "pyjx.extend.core:_eval_jaxpr_transpose=eval_jaxpr_transpose",
    "lib": "pyjx.extend.bindings",
    "linear_util": "pyjx.extend.linear_util pyjx.extend.core:DebugInfo",
    "literals": "pyjx.compat.values",
    "memory": "pyjx.core.places",
    "mesh": "pyjx.core.meshes pyjx.compat.devices:thread_resources pyjx.sharding",
    "mesh_utils": "pyjx.experimental.mesh_utils",
    "monitoring": "pyjx.monitoring",
    "named_sharding": "pyjx.compat.pickles:_unpickle_named_sharding pyjx.sharding "
                      "pyjx.runtime.sharding:DuplicateSpecError",
    "nn": "pyjx.nn",
    "nn.functions": "pyjx.nn",
    "numpy": "pyjx.numpy",
    "numpy.array_methods": "pyjx.numpy.indexing:_IndexUpdateHelper=IndexUpdateHelper,"
                           "_IndexUpdateRef=IndexUpdateRef",
    "numpy.einsum": "pyjx.numpy",
    "numpy.index_tricks": "pyjx.compat.pickles:CClass,RClass,_Mgrid,_Ogrid pyjx.numpy.grids",
    "numpy.lax_numpy": "pyjx.numpy",
    "numpy.linalg": "pyjx.numpy.linalg pyjx.numpy.linalg.decompositions "
                    "pyjx.numpy.linalg.invariants",
    "numpy.ufuncs": "pyjx.numpy",
    "numpy.util": "pyjx.numpy.promotion",
    "numpy.vectorize": "pyjx.compat.callables "
                       "pyjx.numpy.vectorization:_parse_gufunc_signature=parse_signature,vectorize",
    "ops": "pyjx.ops",
    "ops.scatter": "pyjx.ops",
    "ops.special": "pyjx.nn",
    "pallas.core": "pyjx.experimental.pallas "
                   "pyjx.experimental.pallas.kernel_grids:MemorySpace,NoBlockSpec "
                   "pyjx.extend.pallas",
    "pallas.primitives": "pyjx.experimental.pallas pyjx.experimental.pallas.triton:dot",
    **dict.fromkeys([f"pallas.{name}" for name in (
        "cost_estimate", "helpers", "pallas_call", "utils")],
        "pyjx.experimental.pallas"),
    **dict.fromkeys([f"pallas.fuser.{name}" for name in (
        "block_spec", "custom_evaluate", "custom_fusion_lib", "fuser_utils", "fusible", "fusion",
        "jaxpr_fusion")], "pyjx.experimental.pallas.fuser"),
    **dict.fromkeys(("pallas.einshape", "tpu_info"), "pyjx.experimental.pallas.tpu"),
    "pallas.mosaic.core": "pyjx.experimental.pallas.tpu "
                          "pyjx.experimental.pallas.kernel_grids:MemoryRef "
                          "pyjx.experimental.pallas.tpu:AccMemorySpace=ACC",
    **dict.fromkeys([f"pallas.mosaic.{name}" for name in (
        "helpers", "interpret.interpret_pallas_call", "interpret.params", "lowering",
        "pipeline", "prefetch", "primitives", "random")], "pyjx.experimental.pallas.tpu"),
    **dict.fromkeys([f"pallas.mosaic.{name}" for name in ("sc_core", "sc_primitives")],
                    "pyjx.experimental.pallas.tpu_sc"),
    **dict.fromkeys([f"pallas.mosaic_gpu.{name}" for name in (
        "core", "helpers", "interpret.params", "pipeline", "primitives", "torch")],
        "pyjx.experimental.pallas.mosaic_gpu"),
    **dict.fromkeys([f"pallas.triton.{name}" for name in ("core", "gpu_info", "primitives")],
                    "pyjx.experimental.pallas.triton"),
    "partition_spec": "pyjx.core.specs "
                      "pyjx.compat.pickles:unpickle_pspec,_get_default_unconstrained",
    "pjit": "pyjx.experimental.older_calls pyjx.engine.calls:jit_p "
            "pyjx.runtime.resharding:auto_axes pyjx.sharding pyjx.lax "
            "pyjx.experimental.layout:explicit_layout,with_layout_constraint",
    "pmap": "pyjx",
    "profiler": "pyjx.profiler",
    "program_order": "pyjx.experimental.overlap",
    "prng": "pyjx.compat.pickles pyjx.extend.random",
    "public_test_util": "pyjx.test_util",
    "random": "pyjx.random",
    "random.core": "pyjx.compat.random_core",
    **dict.fromkeys(("random.prng", "random.rbg", "random.threefry2x32"),
                    "pyjx.compat.pickles pyjx.extend.random"),
    "random.stateful_rng": "pyjx.experimental.random",
    "ref": "pyjx",
    "scipy": "pyjx.scipy",
    "scipy.optimize.minimize": "pyjx.scipy.optimize",
    "scipy.stats._core": "pyjx.scipy.stats.summaries",
    "scipy.stats.kde": "pyjx.scipy.stats",
    "shard_alike": "pyjx.experimental.shard_alike",
    "shard_map": "pyjx",
    "sharding": "pyjx.runtime.sharding",
    # C++ asks for `make_single_device_sharding`.
    "sharding_impls": "pyjx.runtime.sharding:GSPMDSharding,NamedSharding,Sharding,"
                      "SingleDeviceSharding,make_single_device_sharding=SingleDeviceSharding "
                      "pyjx.core.specs:PartitionSpec pyjx.compat.devices:canonicalize_sharding "
                      "pyjx.sharding pyjx",
    "source_info_util": "pyjx.extend.source_info_util pyjx.extend.source_info_util:"
                        "ExtendNameStackContextManager=extend_name_stack,"
                        "SetNameStackContextManager=set_name_stack,"
                        "TransformNameStackContextManager=transform_name_stack,"
                        "UserContextManager=user_context",
    "sourcemap": "pyjx.experimental.source_mapper",
    "stages": "pyjx.stages",
    "state": "pyjx.ref",
    "state.discharge": "pyjx.experimental.pallas:run_state",
    "state.primitives": "pyjx.ref:ref_addupdate=addupdate,ref_get=get,ref_set=set,ref_swap=swap "
                        "pyjx.experimental.pallas:broadcast_to",
    "state.types": "pyjx.core.avals pyjx.experimental.hijax:TransformedRef "
                   "pyjx.experimental.pallas.mosaic_gpu:Transform",
    "third_party.scipy": "pyjx.scipy",
    "traceback_util": "pyjx.compat.callables:api_boundary,include_frame "
                      "pyjx.core.tracebacks:UnfilteredStackTrace "
                      "pyjx.core.frames:register_exclusion,_exclude_paths=excluded",
    "tree": "pyjx.tree",
    "tree_util": "pyjx.tree_util pyjx.tree_util:tracing_registry=default_registry "
                 "pyjx.compat.callables:_registry,default_registry,none_leaf_registry",
    "typing": "pyjx.core.array_type",
    "util": "pyjx.compat.callables pyjx.extend.backend:register_cache=register_backend_cache",
    "xla_bridge": "pyjx.compat.devices pyjx",
    "xla_metadata": "pyjx.experimental.xla_metadata",
    "xla_transform": "pyjx.extend.xla",
}


def module_of(name: str) -> str:
    """The module of pyjx that is `jax._src.<name>`.

    >>> module_of("lax.linalg"), module_of("core"), module_of("interpreters.ad")
    ('pyjx.lax.linalg', 'pyjx.compat.core', 'pyjx.interpreters.ad')
    >>> module_of("nn"), module_of("nn.functions"), module_of("nn.initializers")
    ('pyjx.compat.nn', 'pyjx.nn', 'pyjx.nn.initializers')
    """
    return f"pyjx.compat.{name}" if name in _made else _listed(name)


def _listed(name: str) -> str:
    """What the table says: for the longest beginning that is in it, and the rest."""
    known, rest = name, ""
    while known and known not in MODULES:
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    found = MODULES.get(known, "pyjx.compat")
    return f"pyjx.compat.{name}" if rest and (" " in found or ":" in found) else found + rest


class _Gathered(ModuleType):
    """A module of `jax._src` whose names are in several modules, or that has modules below.

    It is a module of its own, because importing a module sets an attribute of the package that it
    is in: `jax._src.nn.functions` is none of `jax.nn`.

    >>> from pyjx.compat import nn
    >>> nn.functions.relu is nn.relu
    True
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"pyjx.compat.{name}", f"`jax._src.{name}`.")
        self.__spec__ = place_of_table(self.__name__, __file__)
        self.__path__: list[str] = []
        self._name = name

    def __getattr__(self, name: str) -> Any:
        below = f"{self._name}.{name}"
        if below in MODULES or below in _made:
            return loaded(module_of(below))
        if not name.startswith("__") or name == "__all__":  # whoever walks over all modules asks
            for place in _listed(self._name).split():
                found = self._found(name, place)
                if found is not _made:
                    if ":" in place:  # not looked up again: C++ asks for one with each array
                        setattr(self, name, found)
                    return found
        raise AttributeError(f"module 'jax._src.{self._name}' has no attribute {name!r}")

    def _found(self, name: str, place: str) -> Any:
        """What a place has under the name; `_made` where it has nothing."""
        module, _, names = place.partition(":")
        parts = [entry.partition("=") for entry in names.split(",")]
        original = {public: own or public for public, _, own in parts}.get(name) if names else name
        if original is None or module == self.__name__:
            return _made
        return getattr(loaded(module), original, _made)


def _of_their_own() -> Iterator[str]:
    """The modules that have names of several, and the packages that modules of the table are in."""
    for name, places in MODULES.items():
        parts = name.split(".")
        yield from (".".join(parts[:n]) for n in range(1, len(parts)))
        if ":" in places or " " in places:
            yield name


guard(_Gathered)
_made = {name: _Gathered(name) for name in sorted({*_of_their_own()})}
sys.modules.update({module.__name__: module for module in _made.values()})


def __getattr__(name: str) -> ModuleType:
    try:
        return loaded(module_of(name))
    except ModuleNotFoundError as error:
        if error.name != module_of(name):
            raise
        raise AttributeError(f"module 'jax._src' has no attribute {name!r} here: pyjx has the "
                             "internals of JAX that libraries use") from None


guard(__getattr__)
