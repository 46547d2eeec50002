"""What a program would be on devices that are not here.

    python examples/scale_table.py [--layers 2] [tpu v5e:16x16 16 16] ...

compiles a training step of `parallel_transformer.py` for 256 and 64 chips of TPUs and for 8 GPUs,
and prints for each the memory that a device needs, what devices tell each other in a step, and how
long lowering and compiling took. It needs the compilers, not the devices: libtpu and
jax-cuda13-pjrt, of the versions that docs/installation.md names; a platform without one is left
out.
"""

import argparse
import math
import os
import re
import sys
import time
from collections import Counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import ml_dtypes
import numpy as np
import parallel_transformer as model

import pyjx as jax
from pyjx.experimental import topologies
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P

H100 = """gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132
  fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84942979072
  shared_memory_per_block_optin: 232448 registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 minor: 0 feature_extension: ACCELERATED_FEATURES } }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3" """

# platform, topology, sizes of the axes `data` and `model`
TARGETS = [("tpu", "v5e:16x16", 16, 16), ("tpu", "v5p:4x4x4", 8, 8), ("cuda", "1x1x8", 2, 4)]

COLLECTIVE = re.compile(
    r"= (.+?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start)?\(")
ARRAY = re.compile(r"\b(pred|[a-z]+\d+(?:e\dm\d\w*)?)\[([\d,]*)\]")


def described(platform, name):
    """The devices of a topology."""
    options = {"topology": name, "target_config": H100} if platform == "cuda" else {}
    return topologies.get_topology_desc("" if options else name, platform, **options)


def size_of(dtype, shape):
    bits = {"pred": 8, "bf16": 16}.get(dtype) or int(re.search(r"\d+", dtype).group())
    return bits // 8 * math.prod(map(int, filter(None, shape.split(","))))


def collectives(text):
    """How many collectives of each kind a program has, and the bytes that they give a device."""
    counts, sizes = Counter(), Counter()
    for result, kind, start in COLLECTIVE.findall(text):
        arrays = [size_of(*a) for a in ARRAY.findall(result)]
        counts[kind] += 1
        sizes[kind] += max(arrays) if start else sum(arrays)
    return counts, sizes


def arguments(mesh, batch, length, **sizes):
    """The weights and the tokens, as shapes and shardings."""
    dtype = ml_dtypes.bfloat16
    params = jax.tree.map(
        lambda shape, spec: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)),
        model.shapes(**sizes), model.specs(sizes["layers"]), is_leaf=model.is_shape)
    tokens = jax.ShapeDtypeStruct((batch, length + 1), np.int32,
                                  sharding=NamedSharding(mesh, P("data")))
    return params, tokens


def report(platform, name, data, parts, **sizes):
    """A row of the table, and one for each kind of collective."""
    mesh = topologies.make_mesh(described(platform, name), (data, parts), ("data", "model"))
    with jax.set_mesh(mesh):
        start = time.perf_counter()
        lowered = model.step.lower(*arguments(mesh, **sizes))
        lowering = time.perf_counter() - start
        start = time.perf_counter()
        compiled = lowered.compile()
        compiling = time.perf_counter() - start
    memory = compiled.memory_analysis()
    mib = [n / 2**20 for n in (memory.argument_size_in_bytes, memory.temp_size_in_bytes)]
    counts, volumes = collectives(compiled.as_text())
    print(f"{platform:4} {name:10} {mesh.size:4} {data:4} x {parts:<4} {mib[0]:9.1f} {mib[1]:9.1f} "
          f"{len(lowered.as_text()) / 1024:8.0f} {lowering:8.2f} {compiling:8.1f}", flush=True)
    for kind in sorted(counts):
        print(f"    {kind:20} {counts[kind]:5} {volumes[kind] / 2**20:10.1f} MiB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", help="platform, topology, data, model, ...")
    for name, size in (("layers", 2), ("width", 512), ("heads", 16), ("vocabulary", 4096),
                       ("batch", 256), ("length", 512)):
        parser.add_argument(f"--{name}", type=int, default=size)
    sizes = vars(parser.parse_args())
    given = sizes.pop("targets")
    targets = [(*given[i:i + 2], *map(int, given[i + 2:i + 4])) for i in range(0, len(given), 4)]
    print(f"a training step, bfloat16: {sizes}\n"
          "target         devices data x model  arguments  temporary  text     lower    compile\n"
          "                                     MiB each   MiB each   KiB      s        s")
    missing = []
    for target in targets or TARGETS:
        try:
            report(*target, **sizes)
        except RuntimeError as error:
            if "not installed" not in str(error):
                raise
            missing.append(f"{target[0]} {target[1]}: {error}")
    if missing:
        sys.exit("\n".join([*missing, "The compilers of TPUs and GPUs come with: pip install "
                            "'.[tpu]' and '.[cuda13]'"]))


if __name__ == "__main__":
    main()
