"""What XLA, or the plugin of a platform, refuses of the op table, and what to do in its place."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyjx.jaxlib_api import JAXLIB_VERSION
from tests.op_table import Sample

PAGE = Path(__file__).parent.parent / "docs" / "platforms.md"


class Refusal(NamedTuple):
    """`id` is how those of a sample begin that are refused; `message` what the error says;
    `release` the one of jaxlib that refuses them, where others do not."""

    platform: str
    operation: str
    primitive: str
    id: str
    message: str
    instead: str
    release: tuple[int, ...] = ()

    @property
    def applies(self) -> bool:
        """Whether this jaxlib is the one that is meant."""
        return JAXLIB_VERSION[:len(self.release)] == self.release


_WITHOUT_TRITON = "compile with `xla_gpu_enable_triton_gemm=False`, or where the GPU is"
_ON_CPU = "`jax.device_put` the operand to a CPU device first"

REFUSED = [
    Refusal("cuda", "convolution of integers", "conv_general_dilated", "int",
            "integer convolutions to idioms supported by CuDNN",
            "convolve in float32, which is exact up to 2^24"),
    Refusal("cuda", "`schur`", "schur", "", "not found for platform cuda", _ON_CPU),
    Refusal("cuda", "`hessenberg`", "hessenberg", "", "not found for platform cuda", _ON_CPU),
    Refusal("cuda", "ahead of time by jaxlib 0.7: products of int8 to int32", "dot_general",
            "mk,kn->mn-int8-<class 'numpy.int32'>", "autotune result cache hit", _WITHOUT_TRITON,
            (0, 7)),
    Refusal("cuda", "ahead of time by jaxlib 0.7: `dot_general` by the algorithm BF16_BF16_F32",
            "dot_general", "mk,kn->mn-float32-BF16_BF16_F32", "autotune result cache hit",
            _WITHOUT_TRITON, (0, 7)),
    Refusal("cuda", "ahead of time by jaxlib 0.7: `conv_general_dilated_local`",
            "conv_general_dilated", "local", "autotune result cache hit", _WITHOUT_TRITON, (0, 7)),
    Refusal("cuda", "ahead of time by jaxlib 0.7: `cholesky`", "cholesky", "",
            "cuSolver internal error", "compile where the GPU is, or with jaxlib 0.8", (0, 7)),
    Refusal("tpu", "`dot_general` by the algorithm F32_F32_F32", "dot_general",
            "mk,kn->mn-float32-F32_F32_F32", "ALG_DOT_F32_F32_F32 is not supported",
            'ask for `precision="highest"`'),
    Refusal("tpu", "`exp` and kin with a tolerance", "exp", "tolerant",
            "No implementation found for requested accuracy",
            "ask for `AccuracyMode.HIGHEST` or for nothing"),
    Refusal("tpu", "eigenvalues of general matrices", "eig", "", "not found for platform tpu",
            _ON_CPU),
    Refusal("tpu", "LAPACK's `getrf` by itself", "getrf", "", "not found for platform tpu",
            "`lax.linalg.lu`, for which a TPU has a decomposition of its own"),
    Refusal("tpu", "`qr` with pivoting", "qr", "pivoting", "not found for platform tpu", _ON_CPU),
    Refusal("tpu", "LAPACK's `geqp3`", "geqp3", "", "not found for platform tpu", _ON_CPU),
    Refusal("tpu", "`schur`", "schur", "", "not found for platform tpu", _ON_CPU),
    Refusal("tpu", "`hessenberg`", "hessenberg", "", "not found for platform tpu", _ON_CPU),
    Refusal("tpu", "`tridiagonal`", "tridiagonal", "", "not found for platform tpu", _ON_CPU),
]


def refusal(sample: Sample, platform: str) -> Refusal | None:
    """Why a sample is refused, if it is."""
    for row in REFUSED:
        if (row.platform, row.primitive) == (platform, sample.primitive) and (
                sample.id.startswith(row.id) and row.applies):
            return row
    return None


def page() -> str:
    """The table for users, as Markdown."""
    names = {"cuda": "NVIDIA GPU", "tpu": "TPU"}
    rows = {f"| {names[r.platform]} | {r.operation} | {r.instead} |\n": None for r in REFUSED}
    return _HEAD + "".join(rows)


_HEAD = """\
# What a platform has not

Every operation is compiled ahead of time for an H100, an H200, and TPUs v5e and v6e, with its
gradient, by `tox -e aot`; so are all programs of the notebooks and examples, for one chip and for
eight, and the models of the benchmarks. These are refused, by an error that names the operation,
because XLA or the vendor's library has nothing for them.

Where a GPU is only described, XLA cannot try how to cut products into tiles and refuses some of
them: "Couldn't find output tile sizes" or, by jaxlib 0.7, "Expect autotune result cache hit".
`xla_gpu_enable_triton_gemm=False` compiles them; `emit-hlo` and `pyjx.inspect` do so by
themselves, and say it. With jaxlib 0.7 such programs do not tell their optimised HLO
(`Compiled.as_text`); `emit-hlo` reads it from what XLA dumps.

A few operations take the compiler of TPUs long: libtpu 0.0.21 (jaxlib 0.7) had not compiled the
convolution of a photograph, one image of 426 x 640 points with one window of 7 x 7, after five
minutes, where it takes 16 seconds for 64 x 64. Cut such an image into a batch of tiles, or convolve
it by FFT.

| platform | operation | instead |
|---|---|---|
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
