"""What is known of TPUs' chips, beside figures that JAX 0.12 tells."""

import pytest

from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas import tpu_sc

V = pltpu.ChipVersion


@pytest.mark.parametrize(("version", "vmem", "hbm", "bandwidth", "bf16", "tiles"), [
    (V.TPU_V2, 16 << 20, 8_000_000_000, 358_000_000_000, 23_000_000_000_000, [8, 8, 32, 64]),
    (V.TPU_V4, 16 << 20, 17_200_000_000, 615_000_000_000, 137_500_000_000_000, [8, 8, 32, 64]),
    (V.TPU_V5E, 128 << 20, 17_200_000_000, 820_000_000_000, 197_000_000_000_000, [8, 8, 32, 64]),
    (V.TPU_V5P, 64 << 20, 51_500_000_000, 1_230_000_000_000, 229_500_000_000_000, [8, 8, 32, 64]),
    (V.TPU_V6E, 128 << 20, 34_400_000_000, 1_640_000_000_000, 920_000_000_000_000, [8, 8, 32, 64]),
    (V.TPU_7X, 64 << 20, 103_000_000_000, 3_700_000_000_000, 1_155_000_000_000_000,
     [8, 16, 32, 64]),
    (V.TPU_8T, 128 << 20, 231_000_000_000, 6_400_000_000_000, 996_100_000_000_000,
     [16, 32, 64, 128])])
def test_chips(version, vmem, hbm, bandwidth, bf16, tiles):
    info = pltpu.get_tpu_info_for_chip(version, 1)
    assert (info.vmem_capacity_bytes, info.hbm_capacity_bytes) == (vmem, hbm)
    assert (info.mem_bw_bytes_per_second, info.bf16_ops_per_second) == (bandwidth, bf16)
    assert [info.get_sublane_tiling(x) for x in ("float32", "bfloat16", "int8", "int4")] == tiles
    assert info.is_split_chip == (version.num_physical_tensor_cores_per_chip == 2)
    assert not info.is_megacore and info.is_lite == version.is_lite
    assert (info.sparse_core is None) == (info.generation < 5 or version is V.TPU_V5E)


@pytest.mark.parametrize("version", V)
def test_two_cores_are_one_device_where_the_chip_allows_it(version):
    if version in (V.TPU_V4, V.TPU_V5P):
        info = pltpu.get_tpu_info_for_chip(version, 2)
        assert info.is_megacore and not info.is_split_chip
    else:
        with pytest.raises(ValueError, match="num_tensor_cores_per_logical_device=1, but got 2"):
            pltpu.get_tpu_info_for_chip(version, 2)


@pytest.mark.parametrize(("version", "supported", "refused"), [
    (V.TPU_V3, [("float32", "float32")], [("float32", "bfloat16"), ("int8", "int8")]),
    (V.TPU_V4, [("bfloat16", "int8")], [("int8", "bfloat16"), ("int8", "int8")]),
    (V.TPU_V6E, [("int8", "uint8"), ("uint4", "int4"), ("float8_e5m2", "bfloat16")],
     [("int8", "int4"), ("float8_e4m3fn", "float8_e4m3fn"), ("float16", "float16")]),
    (V.TPU_7, [("float8_e4m3fn", "float8_e5m2"), ("bfloat16", "float8_e5m2")],
     [("float8_e5m2", "bfloat16"), ("int8", "int8")]),
    (V.TPU_8I, [("float8_e5m2", "uint4")], [("int4", "int4")]),
    (V.TPU_8T, [("float8_e5m2", "int4")], [("float8_e5m2", "uint4")])])
def test_products(version, supported, refused):
    info = pltpu.get_tpu_info_for_chip(version, 1)
    assert all(info.is_matmul_supported(*pair) for pair in supported)
    assert not any(info.is_matmul_supported(*pair) for pair in refused)


@pytest.mark.parametrize(("kind", "cores", "version"), [
    ("TPU v4", 2, V.TPU_V4), ("TPU v5 lite", 1, V.TPU_V5E), ("TPU v5e", 1, V.TPU_V5E),
    ("TPU v5", 1, V.TPU_V5P), ("TPU v6 lite", 1, V.TPU_V6E), ("TPU7x", 1, V.TPU_7X)])
def test_the_device_says_which_chip_it_is(kind, cores, version, monkeypatch):
    class Device:
        platform, device_kind, num_cores = "tpu", kind, cores

    monkeypatch.setattr("pyjx.experimental.pallas.chips.devices", lambda: [Device])
    info = pltpu.get_tpu_info()
    assert (info.chip_version, info.num_cores) == (version, cores)
    assert tpu_sc.get_sparse_core_info() == info.sparse_core
    Device.device_kind = "TPU v99"
    with pytest.raises(ValueError, match="Unsupported TPU device kind: TPU v99"):
        pltpu.get_tpu_info()
