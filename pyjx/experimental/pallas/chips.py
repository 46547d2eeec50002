"""What is known of chips: of TPUs their units, their memories, and how fast they are; and which the
default device is.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NoReturn

from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.runtime.backends import default_backend, devices


class ChipVersion(enum.Enum):
    """The kinds of chips."""

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"
    TPU_8T = "8t"

    def __str__(self) -> str:
        return self.value

    @property
    def num_physical_tensor_cores_per_chip(self) -> int:
        """How many cores a chip has that multiply matrices."""
        return 1 if self.is_lite or self is ChipVersion.TPU_8T else 2

    @property
    def supports_megacore(self) -> bool:
        """Whether two cores may be one device."""
        return self in (ChipVersion.TPU_V4, ChipVersion.TPU_V5P)

    @property
    def is_lite(self) -> bool:
        """Whether it is one of the small ones of its generation."""
        return self in (ChipVersion.TPU_V4I, ChipVersion.TPU_V5E, ChipVersion.TPU_V6E)


@dataclass(frozen=True, kw_only=True)
class SparseCoreInfo:
    """The cores of a chip that gather and scatter.

    Args:
      num_cores, num_subcores, num_lanes: how many of each, of the smaller ones in a larger one.
      vmem_capacity_bytes: the memory of a subcore.
      dma_granule_size_bytes: how much a copy moves at least.
    """

    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int


@dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """A chip as one device.

    Args:
      chip_version, generation: which chip it is.
      num_cores: how many cores the device has.
      num_lanes, num_sublanes: the shape of a register of 32-bit numbers.
      mxu_column_size, num_mxus, num_accumulators: the units that multiply matrices.
      vmem_capacity_bytes, cmem_capacity_bytes, smem_capacity_bytes, hbm_capacity_bytes: the sizes
        of memories, in bytes.
      mem_bw_bytes_per_second: how fast the largest memory is.
      bf16_ops_per_second, int8_ops_per_second, fp8_ops_per_second, int4_ops_per_second: how many
        operations of products it does in a second; 0 where it multiplies none of that type.
      sparse_core: its cores that gather and scatter; None where it has none.
    """

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: SparseCoreInfo | None = None

    @property
    def is_lite(self) -> bool:
        """Whether it is one of the small chips of its generation."""
        return self.chip_version.is_lite

    @property
    def is_megacore(self) -> bool:
        """Whether two cores are one device."""
        return self.num_cores > 1

    @property
    def is_split_chip(self) -> bool:
        """Whether the chip has two cores, and the device one of them."""
        return self.chip_version.num_physical_tensor_cores_per_chip > self.num_cores

    def get_sublane_tiling(self, dtype: DTypeLike) -> int:
        """How many rows a tile of arrays of this dtype has."""
        bits = dtypes.itemsize_bits(dtypes.dtype(dtype))
        return self.num_sublanes * (1 if bits == 16 and self.generation < 7 else 32 // bits)

    def is_matmul_supported(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> bool:
        """Whether products of these dtypes need no conversion."""
        lhs, rhs = [dtypes.name(dtypes.dtype(x)) for x in (lhs_dtype, rhs_dtype)]
        return any([lhs in a.split() and rhs in b.split() for a, b in self._products])

    @property
    def _products(self) -> list[tuple[str, str]]:
        """Dtypes on the left and on the right that go together."""
        wide, small = "float32 bfloat16", "float8_e4m3fn float8_e5m2"
        if self.generation < 4:
            return [("float32", "float32")]
        if self.generation == 4:
            return [(wide, f"{wide} int8")]
        if self.generation < 7:
            floats = f"{wide} float8_e5m2 float8_e4m3b11fnuz"
            return [(floats, floats), ("int8 uint8",) * 2, ("int4 uint4",) * 2]
        if self.generation == 8:
            narrow = "int4" if self.chip_version is ChipVersion.TPU_8T else "int4 uint4"
            return [(wide, f"{wide} {small} {narrow}"), (small, f"{small} {narrow}")]
        return [(wide, f"{wide} {small}"), (small, small)]


_KIB, _GIGA, _TERA = 1 << 10, 10 ** 9, 10 ** 12
# Generation, sublanes, columns and number of units, accumulators, KiB of VMEM, bytes of CMEM, KiB
# of SMEM, gigabytes of HBM and what it gives in a second, and tera operations a second of bfloat16,
# int8, 8-bit floats and int4 (of one core of a chip that has two).
_CHIPS = {
    "v2": (2, 8, 128, 1, 0, 16 << 10, 0, 16, 8, 358, 23, 0, 0, 0),
    "v3": (3, 8, 128, 2, 0, 16 << 10, 0, 16, 17.2, 412.5, 70, 0, 0, 0),
    "v4i": (4, 8, 128, 4, 0, 16 << 10, 134_000_000, 1024, 8.59, 614, 137, 0, 0, 0),
    "v4": (4, 8, 128, 4, 0, 16 << 10, 67_000_000, 1024, 17.2, 615, 137.5, 0, 0, 0),
    "v5e": (5, 8, 128, 4, 0, 128 << 10, 0, 1024, 17.2, 820, 197, 394, 0, 788),
    "v5p": (5, 8, 128, 4, 0, 64 << 10, 0, 1024, 51.5, 1230, 229.5, 459, 0, 920),
    "v6e": (6, 8, 256, 2, 0, 128 << 10, 0, 1024, 34.4, 1640, 920, 1840, 920, 3680),
    "7": (7, 8, 256, 2, 128, 64 << 10, 0, 1024, 103, 3700, 1155, 0, 2300, 0),
    "8i": (8, 8, 256, 2, 256, 192 << 10, 0, 1024, 154.5, 4300, 550.5, 0, 4404, 0),
    "8t": (8, 16, 256, 2, 256, 128 << 10, 0, 1024, 231, 6400, 996.1, 996.1, 5976.9, 11953.8),
}
_CHIPS["7x"] = _CHIPS["7"]
# Cores, subcores and lanes, KiB of memory, and bytes of a copy.
_SPARSE_CORES = {
    "v5p": (4, 16, 8, 512, 32), "v6e": (2, 16, 8, 256, 32), "7": (2, 16, 16, 512, 32),
    "7x": (2, 16, 16, 512, 32), "8i": (1, 4, 16, 512, 64), "8t": (2, 16, 16, 256, 64)}
_KINDS = {"TPU v4 lite": "v4i", "TPU v5 lite": "v5e", "TPU v5": "v5p", "TPU v6 lite": "v6e",
          "TPU7": "7", "TPU7x": "7x"}


def get_tpu_info_for_chip(chip_version: ChipVersion, num_tensor_cores_per_logical_device: int
                          ) -> TpuInfo:
    """What is known of a chip.

    Args:
      chip_version: which one.
      num_tensor_cores_per_logical_device: how many of its cores a device has: 1, or 2 where the
        chip may have both in one.

    Raises:
      ValueError: its cores are a device each.

    >>> info = get_tpu_info_for_chip(ChipVersion.TPU_V5E, 1)
    >>> info.vmem_capacity_bytes, info.get_sublane_tiling("int8")
    (134217728, 32)
    """
    cores = num_tensor_cores_per_logical_device
    if cores != 1 and not (cores == 2 and chip_version.supports_megacore):
        raise ValueError(
            "Lite chips, single core chips, and dual-core chips that do not support Megacore must "
            f"have num_tensor_cores_per_logical_device=1, but got {cores}.")
    (generation, sublanes, columns, units, accumulators, vmem, cmem, smem, hbm, bandwidth,
     *speeds) = _CHIPS[chip_version.value]
    of_bf16, of_int8, of_fp8, of_int4 = [int(speed * _TERA) for speed in speeds]
    sparse = None
    if found := _SPARSE_CORES.get(chip_version.value):
        n, subcores, lanes, memory, granule = found
        sparse = SparseCoreInfo(num_cores=n, num_subcores=subcores, num_lanes=lanes,
                                vmem_capacity_bytes=memory * _KIB, dma_granule_size_bytes=granule)
    return TpuInfo(
        chip_version=chip_version, generation=int(generation), num_cores=cores, num_lanes=128,
        num_sublanes=int(sublanes), mxu_column_size=int(columns), num_mxus=int(units),
        num_accumulators=int(accumulators), vmem_capacity_bytes=int(vmem) * _KIB,
        cmem_capacity_bytes=int(cmem), smem_capacity_bytes=int(smem) * _KIB,
        hbm_capacity_bytes=int(hbm * _GIGA), mem_bw_bytes_per_second=int(bandwidth * _GIGA),
        bf16_ops_per_second=of_bf16, int8_ops_per_second=of_int8, fp8_ops_per_second=of_fp8,
        int4_ops_per_second=of_int4, sparse_core=sparse)


def get_tpu_info() -> TpuInfo:
    """What is known of the default device, a TPU.

    Raises:
      ValueError: it is none, or one that is not known.
    """
    device = devices()[0]
    kind = device.device_kind
    name = _KINDS.get(kind, kind.removeprefix("TPU "))
    if device.platform != "tpu" or name not in _CHIPS:
        raise ValueError(f"Unsupported TPU device kind: {kind}. pltpu.get_tpu_info_for_chip tells "
                         "of chips that are not here.")
    return get_tpu_info_for_chip(ChipVersion(name), getattr(device, "num_cores", 1))


def get_sparse_core_info() -> SparseCoreInfo | None:
    """What is known of the cores that gather and scatter of the default device, a TPU.

    Raises:
      ValueError: it is none.
    """
    return get_tpu_info().sparse_core


# -- the default device ----------------------------------------------------------------------------


def _is(platform: str) -> bool:
    return default_backend() == platform


def is_tpu_device() -> bool:
    """Whether the default device is a TPU."""
    return _is("tpu")


def is_gpu_device() -> bool:
    """Whether the default device is a GPU."""
    return _is("gpu")


def get_gpu_info() -> NoReturn:
    """What is known of the default device as a GPU.

    Raises:
      ValueError: it is none.
    """
    if is_gpu_device():
        raise NotImplementedError("Kernels for GPUs are not there, nor what is known of them.")
    raise ValueError(f"Unsupported GPU device kind: {devices()[0].device_kind}")
