"""A lightweight frontend for XLA with the interface of JAX.

    import pyjx as jax
    import pyjx.numpy as jnp

    @jax.jit
    def loss(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    jax.grad(loss)(w, x, y)

Functions are traced to jaxprs, transformed there, lowered to StableHLO text and compiled and run
by jaxlib. Names load their module when they are first used.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import TracebackType

import pyjx.core  # which gets its names here
from pyjx.jax_imports import refuse_beside_jax
from pyjx.lazy import attach, views
from pyjx.version import PYJX_VERSION, PYJX_VERSION_INFO

__version__ = PYJX_VERSION
__version_info__ = PYJX_VERSION_INFO

FAMILIES = {
    "pyjx.configuration":
        "allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks "
        "checking_leaks config debug_infs debug_key_reuse debug_nans default_device "
        "default_matmul_precision default_prng_impl disable_jit enable_checks "
        "enable_custom_prng enable_x64 explain_cache_misses "
        "jax2tf_associative_scan_reductions legacy_prng_key log_compiles make_user_context "
        "no_execution no_tracing numpy_dtype_promotion numpy_rank_promotion "
        "remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard "
        "threefry_partitionable transfer_guard transfer_guard_device_to_device "
        "transfer_guard_device_to_host transfer_guard_host_to_device",
    "pyjx.core.dtypes": "float0",
    "pyjx.core.options": "CompilerEffortLevel Inline",
    "pyjx.core.references": "Ref",
    "pyjx.core.integers": "ds",
    "pyjx.core.name_stack": "named_call named_scope",
    "pyjx.core.trace": "ensure_compile_time_eval",
    "pyjx.transforms.grad": "grad hessian jacfwd jacobian jacrev value_and_grad",
    "pyjx.transforms.linearize": "jvp linear_transpose linearize",
    "pyjx.transforms.vjp": "fwd_and_bwd vjp",
    "pyjx.transforms.vmap": "vmap",
    "pyjx.transforms.checkpointing": "checkpoint checkpoint_policies remat",
    "pyjx.transforms.custom_gradient": "closure_convert custom_gradient",
    "pyjx.transforms.custom_jvp": "custom_jvp",
    "pyjx.transforms.custom_vjp": "custom_vjp",
    "pyjx.runtime.jit": "jit clear_caches",
    "pyjx.runtime.explain": "RetraceWarning explain print_environment_info",
    "pyjx.runtime.abstract": "ShapeDtypeStruct eval_shape make_jaxpr typeof",
    "pyjx.runtime.array": "Array Shard",
    "pyjx.runtime.array_parts": (
        "make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays"),
    "pyjx.runtime.backends":
        "Device default_backend device_count devices host_count=process_count "
        "host_id=process_index host_ids=process_indices local_device_count local_devices "
        "process_count process_index process_indices",
    "pyjx.lax.callbacks": "pure_callback",
    "pyjx.parallel.mapping": "pmap shard_map smap",
    "pyjx.lax.references": "empty_ref free_ref freeze new_ref",
    "pyjx.runtime.host_calls": "effects_barrier",
    "pyjx.runtime.device_put":
        "block_until_ready copy_to_host_async device_get device_put live_arrays",
    "pyjx.core.specs": "P",
    "pyjx.runtime.meshes":
        "get_abstract_mesh get_mesh make_mesh set_mesh use_abstract_mesh",
    "pyjx.runtime.resharding": "reshard",
    "pyjx.runtime.sharding_types": "NamedSharding",
}

_TYPING = """What annotations of functions of arrays are made of.

>>> from pyjx.typing import ArrayLike
>>> isinstance(1.5, ArrayLike)
True

Libraries that check arguments at run time build their checks from these.

>>> from pyjx.typing import DTypeLike
>>> [isinstance("float32", kind) for kind in DTypeLike.__args__ if isinstance(kind, type)]
[True, False, False]
"""

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "ad": ("Where gradients go: what `with_refs` of the result of `vjp` takes and gives.", {
        "pyjx.transforms.vjp": "DidntWant DontWant GradRef GradValue",
    }),
    "ad_checkpoint": ("Rematerialization: what is kept for a backward pass, and names for it.", {
        "pyjx.engine.primitives": "name_p",
        "pyjx.engine.residuals": "Offloadable Recompute Saveable",
        "pyjx.transforms.checkpointing": (
            "checkpoint checkpoint_name checkpoint_name_fwd checkpoint_policies "
            "print_saved_residuals remat"),
    }),
    "core": ("", {  # a package that has a file, but stands below some of the modules here
        "pyjx.compat.interpreters": "Trace",
        "pyjx.core.avals": (
            "AbstractToken AbstractValue ShapedArray abstract_token get_aval "
            "pytype_aval_mappings=aval_makers valid_jaxtype=is_valid_value"),
        "pyjx.core.check": "check_jaxpr",
        "pyjx.compat.contexts": (
            "find_top_trace get_opaque_trace_state nonempty_axis_env_DO_NOT_USE trace_ctx "
            "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE "
            "unsafe_get_axis_names_DO_NOT_USE"),
        "pyjx.core.integers": "max_dim min_dim",
        "pyjx.core.dtypes": "primal_dtype_to_tangent_dtype=tangent_dtype",
        "pyjx.core.effects": "Effect Effects NamedAxisEffect no_effects",
        "pyjx.core.jaxpr": (
            "Atom ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal ParamDict Var "
            "jaxprs_in_params new_jaxpr_eqn"),
        "pyjx.compat.open_primitives": "CallPrimitive",
        "pyjx.core.primitive": "Primitive",
        "pyjx.core.printer": "JaxprPpContext JaxprPpSettings",
        "pyjx.core.evaluation": "eval_jaxpr jaxpr_as_fun",
        "pyjx.core.scalars": "literalable_types=literal_types",
        "pyjx.core.trace": (
            "Tracer concrete_or_error ensure_compile_time_eval "
            "eval_context=ensure_compile_time_eval is_concrete"),
        "pyjx.errors": "JaxprTypeError InconclusiveDimensionOperation",
    }),
    "custom_derivatives": ("Functions with derivatives of the user's, and what their rules use.", {
        "pyjx.engine.custom_derivative_calls": (
            "SymbolicZero custom_jvp_call_p custom_vjp_call_p zero_from_primal"),
        "pyjx.engine.remat_calls": "remat_opt_p",
        "pyjx.transforms.custom_gradient": "closure_convert custom_gradient linear_call",
        "pyjx.transforms.custom_jvp": "custom_jvp",
        "pyjx.transforms.custom_vjp": "CustomVJPPrimal custom_vjp custom_vjp_primal_tree_values",
    }),
    "dtypes": ("Functions and classes of element types.", {
        "pyjx.core.dtypes": (
            "TypePromotionError bfloat16 canonicalize_dtype extended finfo float0 iinfo issubdtype "
            "itemsize_bits prng_key result_type scalar_type_of"),
    }),
    "memory": ("The memories that an array may lie in.", {
        "pyjx.core.places": "Space",
    }),
    "sharding": ("Shardings: how the elements of an array lie on devices, and meshes of devices.", {
        "pyjx.core.meshes": "AbstractDevice AbstractMesh AxisType Mesh",
        "pyjx.core.forbidden": "no_collectives",
        "pyjx.core.specs": "ManualAxisType PartitionSpec UnreducedKind",
        "pyjx.runtime.meshes": "get_abstract_mesh get_mesh set_mesh use_abstract_mesh",
        "pyjx.runtime.resharding": "auto_axes explicit_axes reshard",
        "pyjx.runtime.sharding": "make_single_device_sharding",
        "pyjx.runtime.sharding_types": "NamedSharding Sharding SingleDeviceSharding",
    }),
    "stages": ("The stages of a jitted function: traced, lowered, compiled.", {
        "pyjx.jaxlib_api": "Wrapped=PjitFunction",
        "pyjx.runtime.stages": "ArgInfo Compiled CompilerOptions Lowered Traced",
    }),
    "typing": (_TYPING, {"pyjx.core.array_type": "ArrayLike DTypeLike"}),
}

SUBMODULES = views(__name__, MODULES) + (
    " api_util collect_profile custom_batching debug distributed dlpack errors "
    "example_libraries experimental export extend ffi flatten_util image inspect interpreters lax "
    "lib monitoring nn numpy ops profiler random ref scipy test_util tools tree tree_util version "
    "viewer")

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)


def _load_lowering() -> None:
    """Load the package `lowering` that lies beside this one.

    By its name alone Python would take the first on `sys.path`, such as a file of the user's.
    """
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lowering")
    loaded = sys.modules.get("lowering")
    if loaded is not None:
        found = list(getattr(loaded, "__path__", ())) or [getattr(loaded, "__file__", None)]
        if list(map(os.path.realpath, filter(None, found))) != [os.path.realpath(folder)]:
            raise ImportError(f"pyjx has a package of the name `lowering` ({folder}), but another "
                              f"module of that name was imported before, from {found[0]}. Rename "
                              "it.", name="lowering", path=found[0])
        return
    spec = PathFinder.find_spec("lowering", [os.path.dirname(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"pyjx is not complete: {folder} is missing. Install it anew.",
                          name="lowering", path=folder)
    sys.modules["lowering"] = module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules["lowering"])
    except BaseException:
        del sys.modules["lowering"]
        raise


_load_lowering()


def _users_frames(place: TracebackType | None) -> TracebackType | None:
    """What a traceback has besides frames of this package."""
    ours, passed = os.path.dirname(__file__) + os.sep, []
    while place is not None:
        passed.append(place)
        place = place.tb_next
    for tb in reversed(passed):
        if not tb.tb_frame.f_code.co_filename.startswith(ours):
            place = TracebackType(place, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return place


def _nobody_can_catch() -> bool:
    """Whether `python -m pyjx` imports this, and no program does."""
    frame, ours = sys._getframe(1), ("<frozen ", os.path.dirname(__file__) + os.sep)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
    return frame.f_code.co_filename == "<frozen runpy>"


try:
    refuse_beside_jax()  # before anything is registered a second time
    import pyjx.configuration  # noqa: F401
except (ImportError, ValueError) as _error:  # jaxlib is absent, or a variable is no flag's value
    if not str(getattr(_error, "name", "")).startswith("pyjx"):  # else a file of ours is missing
        _error.__traceback__ = _users_frames(_error.__traceback__)
        if _nobody_can_catch():
            sys.excepthook(type(_error), _error, _error.__traceback__)
            raise SystemExit(1) from None
    raise  # which adds no frame of this file

# Guards get what they do, and arrays and tracers their operators and methods.
from pyjx.core import tracebacks as _tracebacks  # noqa: E402, F401
from pyjx.numpy import array_methods as _array_methods  # noqa: E402

_array_methods.install()

# Compiled functions get their methods, and types and programs the members that libraries ask for.
importlib.import_module("pyjx.runtime.stages")
importlib.import_module("pyjx.compat.given_members")
