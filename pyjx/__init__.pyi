# Written by `python -m pyjx.cli.stubs` from the table of pyjx.

from types import ModuleType as _ModuleType
from pyjx import ad as ad
from pyjx import ad_checkpoint as ad_checkpoint
from pyjx import core as core
from pyjx import custom_derivatives as custom_derivatives
from pyjx import dtypes as dtypes
from pyjx import memory as memory
from pyjx import sharding as sharding
from pyjx import stages as stages
from pyjx import typing as typing
from pyjx import api_util as api_util
from pyjx import custom_batching as custom_batching
from pyjx import debug as debug
from pyjx import distributed as distributed
from pyjx import dlpack as dlpack
from pyjx import errors as errors
from pyjx import example_libraries as example_libraries
from pyjx import experimental as experimental
from pyjx import export as export
from pyjx import extend as extend
from pyjx import ffi as ffi
from pyjx import flatten_util as flatten_util
from pyjx import image as image
from pyjx import inspect as inspect
from pyjx import interpreters as interpreters
from pyjx import lax as lax
from pyjx import lib as lib
from pyjx import monitoring as monitoring
from pyjx import nn as nn
from pyjx import numpy as numpy
from pyjx import ops as ops
from pyjx import profiler as profiler
from pyjx import random as random
from pyjx import ref as ref
from pyjx import scipy as scipy
from pyjx import test_util as test_util
from pyjx import tools as tools
from pyjx import tree as tree
from pyjx import tree_util as tree_util
from pyjx import version as version
from pyjx import viewer as viewer
from pyjx.configuration import allow_f16_reductions as allow_f16_reductions
from pyjx.configuration import array_garbage_collection_guard as array_garbage_collection_guard
from pyjx.configuration import auto_pcast as auto_pcast
from pyjx.configuration import check_tracer_leaks as check_tracer_leaks
from pyjx.configuration import checking_leaks as checking_leaks
from pyjx.configuration import config as config
from pyjx.configuration import debug_infs as debug_infs
from pyjx.configuration import debug_key_reuse as debug_key_reuse
from pyjx.configuration import debug_nans as debug_nans
from pyjx.configuration import default_device as default_device
from pyjx.configuration import default_matmul_precision as default_matmul_precision
from pyjx.configuration import default_prng_impl as default_prng_impl
from pyjx.configuration import disable_jit as disable_jit
from pyjx.configuration import enable_checks as enable_checks
from pyjx.configuration import enable_custom_prng as enable_custom_prng
from pyjx.configuration import enable_x64 as enable_x64
from pyjx.configuration import explain_cache_misses as explain_cache_misses
from pyjx.configuration import jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions
from pyjx.configuration import legacy_prng_key as legacy_prng_key
from pyjx.configuration import log_compiles as log_compiles
from pyjx.configuration import make_user_context as make_user_context
from pyjx.configuration import no_execution as no_execution
from pyjx.configuration import no_tracing as no_tracing
from pyjx.configuration import numpy_dtype_promotion as numpy_dtype_promotion
from pyjx.configuration import numpy_rank_promotion as numpy_rank_promotion
from pyjx.configuration import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from pyjx.configuration import softmax_custom_jvp as softmax_custom_jvp
from pyjx.configuration import thread_guard as thread_guard
from pyjx.configuration import threefry_partitionable as threefry_partitionable
from pyjx.configuration import transfer_guard as transfer_guard
from pyjx.configuration import transfer_guard_device_to_device as transfer_guard_device_to_device
from pyjx.configuration import transfer_guard_device_to_host as transfer_guard_device_to_host
from pyjx.configuration import transfer_guard_host_to_device as transfer_guard_host_to_device
from pyjx.core.dtypes import float0 as float0
from pyjx.core.options import CompilerEffortLevel as CompilerEffortLevel
from pyjx.core.options import Inline as Inline
from pyjx.core.references import Ref as Ref
from pyjx.core.integers import ds as ds
from pyjx.core.name_stack import named_call as named_call
from pyjx.core.name_stack import named_scope as named_scope
from pyjx.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
from pyjx.transforms.grad import grad as grad
from pyjx.transforms.grad import hessian as hessian
from pyjx.transforms.grad import jacfwd as jacfwd
from pyjx.transforms.grad import jacobian as jacobian
from pyjx.transforms.grad import jacrev as jacrev
from pyjx.transforms.grad import value_and_grad as value_and_grad
from pyjx.transforms.linearize import jvp as jvp
from pyjx.transforms.linearize import linear_transpose as linear_transpose
from pyjx.transforms.linearize import linearize as linearize
from pyjx.transforms.vjp import fwd_and_bwd as fwd_and_bwd
from pyjx.transforms.vjp import vjp as vjp
from pyjx.transforms.vmap import vmap as vmap
from pyjx.transforms.checkpointing import checkpoint as checkpoint
from pyjx.transforms.checkpointing import checkpoint_policies as checkpoint_policies
from pyjx.transforms.checkpointing import remat as remat
from pyjx.transforms.custom_gradient import closure_convert as closure_convert
from pyjx.transforms.custom_gradient import custom_gradient as custom_gradient
from pyjx.transforms.custom_jvp import custom_jvp as custom_jvp
from pyjx.transforms.custom_vjp import custom_vjp as custom_vjp
from pyjx.runtime.jit import jit as jit
from pyjx.runtime.jit import clear_caches as clear_caches
from pyjx.runtime.explain import RetraceWarning as RetraceWarning
from pyjx.runtime.explain import explain as explain
from pyjx.runtime.explain import print_environment_info as print_environment_info
from pyjx.runtime.abstract import ShapeDtypeStruct as ShapeDtypeStruct
from pyjx.runtime.abstract import eval_shape as eval_shape
from pyjx.runtime.abstract import make_jaxpr as make_jaxpr
from pyjx.runtime.abstract import typeof as typeof
from pyjx.runtime.array import Array as Array
from pyjx.runtime.array import Shard as Shard
from pyjx.runtime.array_parts import make_array_from_callback as make_array_from_callback
from pyjx.runtime.array_parts import make_array_from_process_local_data as make_array_from_process_local_data
from pyjx.runtime.array_parts import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from pyjx.runtime.backends import Device as Device
from pyjx.runtime.backends import default_backend as default_backend
from pyjx.runtime.backends import device_count as device_count
from pyjx.runtime.backends import devices as devices
from pyjx.runtime.backends import process_count as host_count
from pyjx.runtime.backends import process_index as host_id
from pyjx.runtime.backends import process_indices as host_ids
from pyjx.runtime.backends import local_device_count as local_device_count
from pyjx.runtime.backends import local_devices as local_devices
from pyjx.runtime.backends import process_count as process_count
from pyjx.runtime.backends import process_index as process_index
from pyjx.runtime.backends import process_indices as process_indices
from pyjx.lax.callbacks import pure_callback as pure_callback
from pyjx.parallel.mapping import pmap as pmap
from pyjx.parallel.mapping import shard_map as shard_map
from pyjx.parallel.mapping import smap as smap
from pyjx.lax.references import empty_ref as empty_ref
from pyjx.lax.references import free_ref as free_ref
from pyjx.lax.references import freeze as freeze
from pyjx.lax.references import new_ref as new_ref
from pyjx.runtime.host_calls import effects_barrier as effects_barrier
from pyjx.runtime.device_put import block_until_ready as block_until_ready
from pyjx.runtime.device_put import copy_to_host_async as copy_to_host_async
from pyjx.runtime.device_put import device_get as device_get
from pyjx.runtime.device_put import device_put as device_put
from pyjx.runtime.device_put import live_arrays as live_arrays
from pyjx.core.specs import P as P
from pyjx.runtime.meshes import get_abstract_mesh as get_abstract_mesh
from pyjx.runtime.meshes import get_mesh as get_mesh
from pyjx.runtime.meshes import make_mesh as make_mesh
from pyjx.runtime.meshes import set_mesh as set_mesh
from pyjx.runtime.meshes import use_abstract_mesh as use_abstract_mesh
from pyjx.runtime.resharding import reshard as reshard
from pyjx.runtime.sharding_types import NamedSharding as NamedSharding

collect_profile: _ModuleType

__version__: str
__version_info__: tuple[int, int, int]

__all__ = [
    "ad",
    "ad_checkpoint",
    "core",
    "custom_derivatives",
    "dtypes",
    "memory",
    "sharding",
    "stages",
    "typing",
    "api_util",
    "collect_profile",
    "custom_batching",
    "debug",
    "distributed",
    "dlpack",
    "errors",
    "example_libraries",
    "experimental",
    "export",
    "extend",
    "ffi",
    "flatten_util",
    "image",
    "inspect",
    "interpreters",
    "lax",
    "lib",
    "monitoring",
    "nn",
    "numpy",
    "ops",
    "profiler",
    "random",
    "ref",
    "scipy",
    "test_util",
    "tools",
    "tree",
    "tree_util",
    "version",
    "viewer",
    "allow_f16_reductions",
    "array_garbage_collection_guard",
    "auto_pcast",
    "check_tracer_leaks",
    "checking_leaks",
    "config",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "explain_cache_misses",
    "jax2tf_associative_scan_reductions",
    "legacy_prng_key",
    "log_compiles",
    "make_user_context",
    "no_execution",
    "no_tracing",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "float0",
    "CompilerEffortLevel",
    "Inline",
    "Ref",
    "ds",
    "named_call",
    "named_scope",
    "ensure_compile_time_eval",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "value_and_grad",
    "jvp",
    "linear_transpose",
    "linearize",
    "fwd_and_bwd",
    "vjp",
    "vmap",
    "checkpoint",
    "checkpoint_policies",
    "remat",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "jit",
    "clear_caches",
    "RetraceWarning",
    "explain",
    "print_environment_info",
    "ShapeDtypeStruct",
    "eval_shape",
    "make_jaxpr",
    "typeof",
    "Array",
    "Shard",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "Device",
    "default_backend",
    "device_count",
    "devices",
    "host_count",
    "host_id",
    "host_ids",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
    "pure_callback",
    "pmap",
    "shard_map",
    "smap",
    "empty_ref",
    "free_ref",
    "freeze",
    "new_ref",
    "effects_barrier",
    "block_until_ready",
    "copy_to_host_async",
    "device_get",
    "device_put",
    "live_arrays",
    "P",
    "get_abstract_mesh",
    "get_mesh",
    "make_mesh",
    "set_mesh",
    "use_abstract_mesh",
    "reshard",
    "NamedSharding",
]
