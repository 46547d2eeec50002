"""Splash attention beside attention without kernels, and its masks."""

import dataclasses
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.ops.tpu import splash_attention as splash
from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask_info as infos

N = 256
rng = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(rng.standard_normal(shape), "float32")


def causal_by_hand(q, k):
    return q >= k


@pytest.mark.parametrize(("mask", "sees"), [
    (masks.FullMask((64, 48)), lambda q, k: q == q),
    (masks.CausalMask((64, 48)), causal_by_hand),
    (masks.CausalMask((64, 48), offset=7), lambda q, k: q + 7 >= k),
    (masks.LocalMask((64, 48), (3, 5), 0), lambda q, k: (q - 3 <= k) & (k <= q + 5)),
    (masks.LocalMask((64, 48), (None, 5), 2), lambda q, k: k <= q + 7),
    (masks.LocalMask((64, 48), (3, None), 0), lambda q, k: k >= q - 3),
    (masks.LocalMask((64, 48), (None, None), 0), lambda q, k: q == q),
    (masks.ChunkedCausalMask((64, 48), 16), lambda q, k: (q >= k) & (q // 16 == k // 16)),
    (masks.CausalMask((64, 48)) & masks.LocalMask((64, 48), (3, 0), 0),
     lambda q, k: (q >= k) & (q - 3 <= k)),
    (masks.CausalMask((64, 48)) | masks.NumpyMask(np.ones((64, 48), bool)), lambda q, k: q == q)])
def test_masks(mask, sees):
    expected = np.array([[sees(q, k) for k in range(48)] for q in range(64)])
    assert mask.shape == (64, 48)
    np.testing.assert_array_equal(mask[:, :], expected)
    np.testing.assert_array_equal(mask[8:24, 40:48], expected[8:24, 40:48])
    assert mask == dataclasses.replace(mask) if type(mask) is masks.FullMask else mask == mask


def test_masks_as_arrays():
    np.testing.assert_array_equal(splash.make_causal_mask((4, 4), 1), np.tri(4, 4, 1, bool))
    np.testing.assert_array_equal(splash.make_local_attention_mask((4, 4), (0, 0)), np.eye(4))
    assert 0.6 < splash.make_random_mask((100, 100), 0.3, 0).mean() < 0.8
    whole = splash.MultiHeadMask([masks.CausalMask((4, 4)), masks.FullMask((4, 4))])
    assert whole.shape == (2, 4, 4) and whole[0:2, 1:2, 2:4].tolist() == [
        [[False, False]], [[True, True]]]


MASKS = {
    "causal": [masks.CausalMask((N, N))] * 4,
    "near": [masks.LocalMask((N, N), (60, 10), 0)] * 4,
    "mixed": [masks.CausalMask((N, N)), masks.FullMask((N, N)),
              masks.ChunkedCausalMask((N, N), 64),
              masks.LocalMask((N, N), (130, None), 5) | masks.NumpyMask(np.eye(N, dtype=bool))],
}
WIDE = splash.BlockSizes(128, 256, 128, 256, 128, 128, 128, 256)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("heads", "options"), [
    (4, {}), (2, {"attn_logits_soft_cap": 5.0}), (0, {"block_sizes": WIDE})])
@pytest.mark.parametrize(("segments", "sinks"), [(False, False), (True, True)])
def test_values_and_gradients(mask, heads, options, segments, sinks):
    """Of as many heads of keys, of fewer, and of one that all share, 0."""
    make, reference = (splash.make_splash_mha, splash.make_masked_mha_reference) if heads else (
        splash.make_splash_mqa, splash.make_masked_mqa_reference)
    whole = splash.MultiHeadMask(MASKS[mask])
    attend = make(whole, head_shards=1, q_seq_shards=1, interpret=True, **options)
    plain = reference(whole, **{k: v for k, v in options.items() if k != "block_sizes"})
    shape = (heads, N, 64) if heads else (N, 64)
    q, k, v = normal(4, N, 64) * 0.3, normal(*shape), normal(*shape[:-1], 32)
    ids = splash.SegmentIds(*[jnp.arange(N) // 100] * 2) if segments else None
    sink = normal(4) if sinks else None

    def total(f, q, k, v, sink):
        return jnp.sin(f(q, k, v, ids, sink)).sum()

    wrt = (1, 2, 3, 4) if sinks else (1, 2, 3)
    np.testing.assert_allclose(attend(q, k, v, ids, sink), plain(q, k, v, ids, sink), atol=1e-5)
    for a, b in zip(jax.grad(total, wrt)(attend, q, k, v, sink),
                    jax.grad(total, wrt)(plain, q, k, v, sink), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_sums_of_exponentials():
    whole = splash.MultiHeadMask(MASKS["causal"])
    q, k, v = normal(4, N, 64), normal(4, N, 64), normal(4, N, 64)
    attend = splash.make_splash_mha_single_device(whole, save_residuals=True, interpret=True)
    plain = splash.make_masked_mha_reference(whole, save_residuals=True)
    (out, (sums,)), (expected, (expected_sums,)) = attend(q, k, v), plain(q, k, v)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5)
    a, b = [jax.grad(lambda q, f=f: f(q, k, v)[1][0].sum())(q) for f in (attend, plain)]
    np.testing.assert_allclose(a, b, atol=1e-4)


def test_what_sees_nothing_is_zero():
    mask = np.zeros((1, N, N), bool)
    mask[0, :130, :128] = True
    attend = splash.make_splash_mha_single_device(mask, interpret=True)
    q = normal(1, N, 64)
    out = attend(q, q, q)
    assert not np.isnan(out).any() and not out[:, 130:].any()
    assert not np.isnan(jax.grad(lambda q: attend(q, q, q).sum())(q)).any()


def test_batches_and_arguments():
    attend = splash.make_splash_mha_single_device(splash.MultiHeadMask(MASKS["mixed"]))
    q = normal(3, 4, N, 64)
    with pltpu.force_tpu_interpret_mode():
        out = jax.jit(lambda f, q: jax.vmap(f)(q, q, q))(attend, q)
        np.testing.assert_allclose(out[1], attend(q[1], q[1], q[1]), atol=1e-6)
    assert len(jax.tree.leaves(attend)) == 12


@pytest.mark.parametrize(("of_keys", "shards"), [(False, 1), (True, 1), (True, 2)])
def test_tables(of_keys, shards):
    """What is fetched is what is computed, or has been fetched, or will be next."""
    whole = splash.MultiHeadMask([masks.LocalMask((512, 512), (100, 0), 0)] * 2)
    info, _ = infos.process_mask(whole, (128, 128), of_keys, q_seq_shards=shards)
    assert info.block_mask.tolist() == [[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]]
    assert len(info.partial_mask_blocks) == 2  # on the diagonal, and before it
    for h, i, j in np.ndindex(*info.block_mask.shape):
        if info.block_mask[h, i, j]:
            assert info.data_next[h, i, j] == (i % (4 // shards) if of_keys else j)
            block = info.partial_mask_blocks[info.mask_next[h, i, j]]
            part = whole[h, i * 128:(i + 1) * 128, j * 128:(j + 1) * 128]
            np.testing.assert_array_equal(block, part.T if of_keys else part)
    if not of_keys:
        assert info.data_next[0].tolist() == [[0, 0, 0, 0], [0, 1, 1, 1], [1, 1, 2, 2],
                                              [2, 2, 2, 3]]


@pytest.mark.parametrize(("call", "said"), [
    (lambda f, q: f(q[0], q[0], q[0]), "must be of the shape (heads, length, size)"),
    (lambda f, q: f(q[:, :128], q, q), "the mask is of 256 queries and 256 keys"),
    (lambda f, q: f(q, q[:3], q[:3]), "the heads of queries a multiple of those of keys"),
    (lambda f, q: f(q, q, q, splash.SegmentIds(q[0, :, 0], q[0, :9, 0])), "segment ids are of the"),
    (lambda f, q: splash.make_splash_mha_single_device(np.ones((N, N), bool)), "a mask is of the"),
    (lambda f, q: splash.make_splash_mha_single_device(splash.CausalMask((N, N))),
     "a mask for each head is needed, got CausalMask"),
    (lambda f, q: f(normal(8, N, 64), q, q), "the mask is of 4 heads on each device, got q of"),
    (lambda f, q: splash.make_splash_mha_single_device(np.ones((2, 9, 9), bool)), "block_q=128"),
    (lambda f, q: splash.BlockSizes(128, 128, 96), "block_kv_compute=96"),
    (lambda f, q: splash.make_splash_mha_single_device(np.ones((2, N, N), bool), mask_value=-100.0),
     "which no other one reaches"),
    (lambda f, q: bool(masks.CausalMask((2, 2))), "Conversion to bool is unsupported"),
    (lambda f, q: masks.FullMask((2, 2)) & masks.FullMask((2, 3)), "must have the same shape"),
    (lambda f, q: jax.jit(splash.make_splash_mha_single_device)(np.ones((2, N, N), bool)),
     "the mask is traced"),
    (lambda f, q: jax.grad(lambda q: splash.make_splash_mha_single_device(
        splash.MultiHeadMask(MASKS["causal"]), interpret=True,
        block_sizes=splash.BlockSizes(128, 128))(q, q, q).sum())(q),
     "not all backward blocks are specified")])
def test_errors(call, said):
    attend = splash.make_splash_mha_single_device(splash.MultiHeadMask(MASKS["causal"]))
    with pytest.raises((ValueError, NotImplementedError), match=re.escape(said)):
        call(attend, normal(4, N, 64))


def test_forms_for_tpus():
    attend = splash.make_splash_mha_single_device(splash.MultiHeadMask(MASKS["mixed"]))
    q = jax.ShapeDtypeStruct((4, N, 128), "bfloat16")
    text = jax.export.export(jax.jit(jax.grad(lambda q: attend(q, q, q).astype("float32").sum())),
                             platforms=["tpu"])(q).mlir_module()
    assert text.count("@tpu_custom_call") == 3
    assert kernels.SplashAttentionKernel is type(attend)
