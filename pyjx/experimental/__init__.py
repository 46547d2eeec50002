"""Experimental modules: what may still change."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "colocated_python": ("Python functions and objects on the hosts of devices.", {
        "pyjx.experimental.colocated": (
            "colocated_cpu_devices colocated_python colocated_python_class"),
    }),
    "colocated_python.api": ("What users of functions beside devices call.", {
        "pyjx.experimental.colocated": (
            "colocated_cpu_devices colocated_python colocated_python_class"),
    }),
    "colocated_python.func": ("Functions beside devices, which are those of this process.", {
        "pyjx.experimental.colocated": "colocated_cpu_devices colocated_python",
    }),
    "colocated_python.func_backend": ("What hosts keep of calls of functions.", {
        "pyjx.experimental.colocated": "SINGLETON_RESULT_STORE",
    }),
    "colocated_python.obj_backend": ("What hosts keep of objects.", {
        "pyjx.experimental.colocated": "SINGLETON_OBJECT_STORE",
    }),
    "colocated_python.obj": ("Objects beside devices, which are those of this process.", {
        "pyjx.experimental.colocated": "colocated_python_class",
    }),
    "colocated_python.serialization": ("What goes between processes: nothing.", {
        "pyjx.jaxlib_api": "DeviceList",
    }),
    "compilation_cache": ("The cache of compiled programs on disk.", {}),
    "compilation_cache.compilation_cache": ("Where compiled programs are kept on disk.", {
        "pyjx.runtime.cache": "reset_cache=forget_folders set_cache_dir",
    }),
    "compute_on": ("Computing parts of a program elsewhere than on its devices: on their hosts.", {
        "pyjx.experimental.annotated_calls": "compute_on compute_on2",
    }),
    "control_deps": ("Operations that wait for others whose results they do not read.", {
        "pyjx.experimental.annotated_calls": "control_dep schedule",
    }),
    "fused": ("Functions that XLA is to make one kernel of.", {
        "pyjx.experimental.annotated_calls": "fused fused_p",
    }),
    "hijax": ("Types of a library's own: values made of arrays, with operations of their own.", {
        "pyjx.compat.hi_primitives": (
            "HiPrim HiPrimitive RefAccum VJPHiPrimitive bdims_at_front jvp_from_lin "
            "linearize_from_jvp unmap_avals vjp_from_jvp vjp_from_lin vmap_rule"),
        "pyjx.compat.hi_types": (
            "AvalMutableQDD AvalQDD HiType MutableHiType register_hitype"),
        "pyjx.compat.lowering_rules": "control_flow_allowed_effects",
        "pyjx.compat.values": "aval_method aval_property",
        "pyjx.compat.rule_tables": "instantiate_zeros",
        "pyjx.core.avals": "AbstractRef AbstractValue ShapedArray",
        "pyjx.core.specs": "HiPspec MappingSpec",
        "pyjx.engine.tangents": "Zero is_undefined_primal",
        "pyjx.lax.references": "TransformedRef",
        "pyjx.transforms.custom_vjp": "GradAccum NullAccum ValAccum",
    }),
    "layout": ("The order in which the elements of arrays stand in memory.", {
        "pyjx.core.layouts": "Format Layout",
        "pyjx.experimental.array_placement": "explicit_layout with_layout_constraint",
    }),
    "overlap": ("Operations in the order in which the program has them.", {
        "pyjx.experimental.annotated_calls": "program_order",
    }),
    "pjit": ("`pjit`: the older name of `jit`.", {
        "pyjx.experimental.older_calls": "pjit",
    }),
    "profiler": ("What a profile says of instructions, for profile guided optimization.", {
        "pyjx.profiler": "get_profiled_instructions_proto",
    }),
    "random": ("Random numbers from a generator that keeps count of what it gave.", {
        "pyjx.experimental.stateful_random": "StatefulPRNG stateful_rng",
    }),
    "scheduling_groups": ("Telling XLA which calls to schedule together.", {
        "pyjx.engine.metadata": "xla_metadata_call_p",
        "pyjx.compat.lowering_rules": "attr_get dce_jaxpr_xla_metadata_rule",
        "pyjx.experimental.annotated_calls": "scheduling_group xla_metadata_call",
    }),
    "shard_alike": ("Arrays that are sharded alike.", {
        "pyjx.experimental.array_placement": "shard_alike",
    }),
    "shard_map": ("`shard_map` as it was called before it was `jax.shard_map`.", {
        "pyjx.experimental.older_calls": "shard_map",
    }),
    "source_mapper": ("Source maps: from the text of a program to the user's source.", {
        "pyjx.experimental.source_maps": (
            "MappingsGenerator Pass SourceMap SourceMapDump all_passes canonicalize_filename "
            "compile_with_env create_mlir_sourcemap filter_passes generate_sourcemaps "
            "register_pass"),
    }),
    "source_mapper.common": ("Stages of compilation whose texts have source maps.", {
        "pyjx.experimental.source_maps": (
            "CompileFn GenerateDumpFn Pass SourceMapDump all_passes compile_with_env "
            "filter_passes register_pass"),
    }),
    "source_mapper.generate_map": ("Source maps of a function at stages of its compilation.", {
        "pyjx.experimental.source_maps": "generate_sourcemaps",
    }),
    "source_mapper.hlo": ("The stages of StableHLO and HLO.", {}),
    "source_mapper.jaxpr": ("The stage of jaxprs.", {
        "pyjx.experimental.source_maps": "canonicalize_filename",
    }),
    "source_mapper.mlir": ("Source maps of MLIR modules that have locations.", {
        "pyjx.experimental.source_maps": "create_mlir_sourcemap",
    }),
    "transfer": ("Transfers of arrays between processes that form no group, by jaxlib's server.", {
        "pyjx.extend.bindings": "TransferConnection TransferServer start_transfer_server",
    }),
    "xla_metadata": ("Telling XLA something of operations, such as what to fuse.", {
        "pyjx.experimental.annotated_calls": (
            "fuse_limit must_fuse_call set_xla_metadata xla_metadata_call xla_metadata_call2"),
    }),
}

FAMILIES: dict[str, str] = {
    "pyjx.experimental.earray": "EArray primal_tangent_dtype",
    "pyjx.compat.hi_types": "cur_qdd",
    "pyjx.lax.callbacks": "io_callback",
}

SUBMODULES = views(__name__, MODULES) + (
    " array_serialization buffer_callback checkify custom_partitioning jax2tf jet key_reuse "
    "mesh_utils mosaic multihost_utils ode pallas rnn roofline serialize_executable sparse thunky "
    "topologies")

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
