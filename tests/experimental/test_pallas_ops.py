"""The kernels that are there, interpreted, beside plain functions."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.ops.tpu import flash_attention as flash

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _interpreted():
    with pltpu.force_tpu_interpret_mode():
        yield


def normal(*shape, dtype="float32"):
    return jnp.asarray(rng.standard_normal(shape), dtype)


def agree(got, want, tolerance=2e-5):
    got, want = jax.tree.flatten(got), jax.tree.flatten(want)
    assert got[1] == want[1]
    for a, b in zip(got[0], want[0], strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a, b = np.asarray(a, "float32"), np.asarray(b, "float32")
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


# -- flash attention -------------------------------------------------------------------------------


def plain_attention(q, k, v, bias=None, ids=None, *, causal=False, scale=1.0):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype("float32")
    scores = (scores if bias is None else scores + bias) * scale
    seen = jnp.ones(scores.shape[-2:], bool)
    seen = jnp.tril(seen) if causal else seen
    if ids is not None:
        seen = seen & (ids.q[:, None, :, None] == ids.kv[:, None, None, :])
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e30))
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v).astype(q.dtype)


MIXED = flash.BlockSizes(
    128, 256, 128, 1, block_q_major_dkv=256, block_k_major_dkv=128, block_k_dkv=128,
    block_q_dkv=128, block_k_major_dq=256, block_k_dq=128, block_q_dq=256)


@pytest.mark.parametrize(("causal", "segments", "bias", "sizes", "dtype"), [
    (False, False, False, None, "float32"), (True, False, False, MIXED, "float32"),
    (False, True, True, MIXED, "float32"), (True, True, True, None, "float32"),
    (True, False, True, MIXED, "bfloat16")])
def test_flash_attention_and_its_gradients(causal, segments, bias, sizes, dtype):
    batch, heads, length, size = (1, 2, 256, 64)
    q, k, v, ct = [normal(batch, heads, length, size, dtype=dtype) for _ in range(4)]
    ids = jnp.asarray(np.sort(rng.integers(0, 3, (batch, length))), "int32")
    ids = flash.SegmentIds(ids, ids) if segments else None
    args = q, k, v, normal(batch, heads, length, length, dtype=dtype) if bias else None

    def kernel(q, k, v, bias):
        return flash.flash_attention(q, k, v, bias, ids, causal=causal, sm_scale=0.3,
                                     block_sizes=sizes)

    def plain(q, k, v, bias):
        return plain_attention(q, k, v, bias, ids, causal=causal, scale=0.3)

    for got, want in zip(jax.vjp(kernel, *args), jax.vjp(plain, *args), strict=True):
        if callable(got):
            got, want = got(ct), want(ct)
        agree(got, want, 3e-5 if dtype == "float32" else 0.03)


def test_queries_and_keys_of_other_lengths_and_batches_of_attention():
    q, k, v = normal(2, 1, 1, 128, 32), normal(2, 1, 1, 256, 32), normal(2, 1, 1, 256, 32)
    agree(jax.jit(jax.vmap(flash.flash_attention))(q, k, v), jax.vmap(plain_attention)(q, k, v))


def test_the_references_of_attention_agree():
    q, k, v, ct = [normal(1, 1, 8, 4) for _ in range(4)]
    bias = normal(1, 1, 8, 8)
    out, total, top = flash.mha_reference_no_custom_vjp(q, k, v, bias, causal=True,
                                                        save_residuals=True)
    want, vjp = jax.vjp(lambda *args: plain_attention(*args, causal=True), q, k, v, bias)
    agree(out, want)
    agree(flash.mha_reference(q, k, v, bias, causal=True), want)
    agree(flash.mha_reference_bwd(q, k, v, bias, None, out, total, top, ct, causal=True), vjp(ct))


def test_a_gradient_may_be_asked_for_when_kernels_are_not_interpreted():
    q = normal(1, 1, 128, 32)
    out, vjp = jax.vjp(lambda q: flash.flash_attention(q, q, q), q)
    pltpu.set_tpu_interpret_mode(None)
    agree(vjp(out), jax.vjp(lambda q: plain_attention(q, q, q), q)[1](out), 1e-4)


Q = jnp.ones((2, 2, 128, 64))


@pytest.mark.parametrize(("run", "said"), [
    (lambda: flash.flash_attention(Q[0], Q, Q), r"q has the shape \(2, 128, 64\). Expected"),
    (lambda: flash.flash_attention(Q, Q[:1], Q), "Batch size mismatch: got 2, 1 and 2"),
    (lambda: flash.flash_attention(Q, Q, Q[:, :1]), "Head count mismatch: got 2, 2, 1"),
    (lambda: flash.flash_attention(Q, Q[..., :32], Q), "Model dimension mismatch: got 64 and 32"),
    (lambda: flash.flash_attention(Q, Q, Q[:, :, :64]), "KV sequence length mismatch: got 128"),
    (lambda: flash.flash_attention(Q, Q, Q, Q), "Attention bias shape mismatch: expected"),
    (lambda: flash.flash_attention(Q, Q, Q, None, flash.SegmentIds(Q[0, 0], Q[0])),
     r"Q segment ids shape mismatch: expected \(batch_size=2, q_seq_len=128,\), got \(128, 64\)"),
    (lambda: flash.flash_attention(Q[:, :, :64], Q, Q), "block_q=128 should be smaller or equal"),
    (lambda: flash.flash_attention(Q, *[jnp.ones((2, 2, 200, 64))] * 2),
     "kv_seq_len=200 should be divisible by block_k_major=128"),
    (lambda: flash.BlockSizes(128, 192, 128, 1), "block_k=128 should divide block_k_major=192"),
    (lambda: jax.grad(lambda q: flash.flash_attention(
        q, Q, Q, block_sizes=flash.BlockSizes(128, 128, 128, 1)).sum())(Q),
     "differentiated, but not all backward blocks are specified"),
])
def test_mistakes_of_attention(run, said):
    with pytest.raises(ValueError, match=said):
        run()
