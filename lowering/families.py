"""Which module has the rules of which primitives: it loads with the first that is needed."""

from __future__ import annotations

from collections.abc import Iterable

FAMILIES: dict[str, str] = {
    "lowering.callbacks": (
        "buffer_callback debug_callback inspect_sharding io_callback pure_callback"
    ),
    "lowering.calls": (
        "composite compute_on control_dep custom_lin dce_sink fused_call jit outlined_call "
        "xla_metadata_call xla_metadata_operation"
    ),
    "lowering.collectives": (
        "all_gather all_reduce all_to_all axis_index ppermute preduced pvary reduce_scatter "
        "reduced_vary_cast unreduced_psum vary_unreduced_cast"
    ),
    "lowering.conditionals": "cond platform_index",
    "lowering.contractions": "dot_general",
    "lowering.convolution": "conv_general_dilated",
    "lowering.cumulative": "cumlogsumexp cummax cummin cumprod cumsum linear_recurrence",
    "lowering.dynamic": "dim_as_value",
    "lowering.elementwise": (
        "abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i1e cbrt ceil "
        "clamp clz complex conj convert_element_type copy cos cosh digamma div eq eq_to erf "
        "erf_inv erfc exp expm1 floor ge gt imag is_finite le le_to log log1p lt lt_to max "
        "min mul ne neg nextafter not optimization_barrier or population_count pow "
        "real reduce_precision rem round rsqrt select_n shift_left shift_right_arithmetic "
        "shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh tie xor"
    ),
    "lowering.foreign_calls": "call_exported ffi_call",
    "lowering.fourier": "fft",
    "lowering.linalg.expanders": "cholesky triangular_solve",
    "lowering.indexing": (
        "gather scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub"
    ),
    "lowering.loops": "scan while",
    "lowering.manual": "custom_partitioning on_parts open_sum shard_map",
    "lowering.random_bits": "bits_apart rng_bit_generator rng_uniform threefry2x32",
    "lowering.reductions": (
        "argmax argmin reduce reduce_and reduce_max reduce_min reduce_or reduce_prod "
        "reduce_sum reduce_xor"
    ),
    "lowering.shapes": (
        "bitcast_convert_type broadcast_in_dim concatenate dynamic_slice dynamic_update_slice "
        "iota pad reshape rev slice split squeeze stack tile transpose unstack"
    ),
    "lowering.shardings":
        "device_put layout_constraint reshard shard_alike sharding_constraint",
    "lowering.sorting": "sort top_k",
    "lowering.windows": (
        "reduce_window reduce_window_max reduce_window_min reduce_window_sum "
        "select_and_gather_add select_and_scatter select_and_scatter_add"
    ),
}


# The same of rules for one platform that stand in a module of their own.
_GPU = {
    "lowering.linalg.gpu": (
        "cholesky cholesky_update eig eigh geqp3 geqrf getrf householder_product "
        "lu_pivots_to_permutation ormqr svd tridiagonal tridiagonal_solve"
    ),
}
PLATFORM_FAMILIES: dict[str, dict[str, str]] = {
    "cpu": {
        "lowering.linalg.lapack": (
            "cholesky eig eigh geqp3 geqrf getrf hessenberg householder_product ormqr schur svd "
            "triangular_solve tridiagonal tridiagonal_solve"
        ),
        "lowering.foreign_calls": "csr_product",
    },
    "cuda": _GPU,
    "rocm": _GPU,
    "tpu": {"lowering.linalg.expanders": "eigh geqrf householder_product lu"},
}


def _by_name(families: dict[str, str]) -> dict[str, str]:
    return {name: module for module, names in families.items() for name in names.split()}


_MODULES = _by_name(FAMILIES)
_PLATFORM_MODULES = {p: _by_name(families) for p, families in PLATFORM_FAMILIES.items()}


def without_gpu_kernels(names: Iterable[str]) -> None:
    """Let the rules of some operations for GPUs be: the plugins have no kernels for them."""
    for platform in ("cuda", "rocm"):
        for name in names:
            _PLATFORM_MODULES[platform].pop(name, None)


def module_of(name: str, platform: str | None) -> str | None:
    """The module that has the rule of a primitive for a platform; None if there is none."""
    return _PLATFORM_MODULES.get(platform, {}).get(name) or _MODULES.get(name)  # type: ignore[arg-type]


# The modules whose rules call foreign functions, or programs that may, on every platform; None is
# that of primitives of libraries.
_FOREIGN = frozenset((None, "lowering.callbacks", "lowering.foreign_calls"))


def is_foreign(name: str, platform: str) -> bool:
    """Whether a primitive may be a call of a foreign function, which has its operands' layouts
    fixed."""
    return _MODULES.get(name) in _FOREIGN or name in _PLATFORM_MODULES[platform]
