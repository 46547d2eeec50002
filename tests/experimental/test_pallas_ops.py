"""The kernels that are there, interpreted, beside plain functions."""

import importlib

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.ops.tpu import flash_attention as flash
from pyjx.experimental.pallas.ops.tpu import megablox
from pyjx.experimental.pallas.ops.tpu.example_kernel import double
from pyjx.experimental.pallas.ops.tpu.matmul import matmul
from pyjx.experimental.pallas.ops.tpu.megablox.gmm import make_group_metadata, tgmm
from pyjx.experimental.pallas.ops.tpu.paged_attention import paged_attention
from pyjx.experimental.pallas.ops.tpu.paged_attention import quantization_utils as eight_bits
from pyjx.experimental.pallas.ops.tpu.paged_attention.util import grouped_query_attention_reference

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


# -- products of groups ----------------------------------------------------------------------------


def plain_groups(lhs, rhs, sizes, start=0, existing=None, transpose=False):
    group = jnp.repeat(jnp.arange(sizes.shape[0]), sizes, total_repeat_length=lhs.shape[0]) - start
    known = (group >= 0) & (group < rhs.shape[0])
    each = jnp.einsum("mk,mnk->mn" if transpose else "mk,mkn->mn", lhs, rhs[group])
    return jnp.where(known[:, None], each, 0.0 if existing is None else existing)


@pytest.mark.parametrize(("sizes", "start", "groups", "existing", "transpose", "tiling"), [
    ((11, 0, 30, 23), None, 4, False, False, (8, 32, 16)),
    ((16, 16, 0, 32), None, 4, False, True, lambda m, k, n: (16, 32, 128)),
    ((30, 4, 20, 10), 1, 2, False, False, (8, 16, 32)),
    ((30, 4, 20, 10), 2, 1, True, False, (32, 16, 32)),
])
def test_products_of_groups_and_their_gradients(sizes, start, groups, existing, transpose, tiling):
    sizes = jnp.array(sizes, "int32")
    lhs, ct = normal(64, 40), normal(64, 48)
    rhs = normal(groups, 48, 40) if transpose else normal(groups, 40, 48)
    offset = None if start is None else jnp.array(start)
    args = lhs, rhs, *[normal(64, 48)] * existing

    def kernel(lhs, rhs, *there):
        return megablox.gmm(lhs, rhs, sizes, tiling=tiling, group_offset=offset,
                            existing_out=there[0] if there else None, transpose_rhs=transpose)

    out, vjp = jax.vjp(kernel, *args)
    want, plain_vjp = jax.vjp(lambda lhs, rhs, *there: plain_groups(
        lhs, rhs, sizes, start or 0, *(there or [None]), transpose=transpose), *args)
    agree(out, want)
    agree(vjp(ct), plain_vjp(ct))


def test_a_function_keeps_its_name_when_the_module_below_is_imported():
    megablox.gmm = importlib.import_module(f"{megablox.__name__}.gmm")
    assert callable(megablox.gmm)


def test_products_of_columns_of_groups():
    sizes, lhs, rhs = jnp.array([11, 0, 53]), normal(16, 64), normal(64, 24).astype("bfloat16")
    group = jnp.repeat(jnp.arange(3), sizes, total_repeat_length=64)
    each = jnp.einsum("km,mn,mg->gkn", lhs, rhs, jax.nn.one_hot(group, 3))
    agree(tgmm(lhs, rhs, sizes, tiling=(8, 16, 128)), each)
    out = tgmm(lhs, rhs, sizes, tiling=(8, 16, 128), group_offset=jnp.array(1),
               num_actual_groups=2, existing_out=jnp.ones((2, 16, 24)))
    agree(out, each[1:] + 1)


def test_groups_without_rows_have_steps_if_asked_for():
    for empty, want in ((True, ([0, 1, 1, 2], [0, 0, 1, 1])), (False, ([1, 1, 2], [0, 1, 1]))):
        (offsets, groups, tiles), steps = make_group_metadata(
            group_sizes=jnp.array([0, 10, 6]), m=16, tm=8, start_group=0, num_nonzero_groups=3,
            visit_empty_groups=empty)
        assert offsets.tolist() == [0, 0, 10, 16]
        assert (groups.tolist()[:steps], tiles.tolist()[:steps]) == want


# -- attention to pages ----------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "at_once", "cap", "few", "dtype"), [
    (8, 2, None, False, "float32"), (2, 4, 2.0, False, "bfloat16"), (6, 1, None, True, "float32")])
def test_attention_to_keys_that_lie_in_pages(heads, at_once, cap, few, dtype):
    q = normal(3, heads, 128, dtype=dtype)
    k, v = normal(2, 12, 8, 128, dtype=dtype), normal(2, 12, 8, 128, dtype=dtype)
    lengths = jnp.array([19, 8, 32])
    places = jnp.asarray(rng.permutation(12).reshape(3, 4), "int32")
    given = [eight_bits.quantize_to_int8(x) for x in (k, v)] if few else [k, v]
    got = paged_attention(q, *given, lengths, places, pages_per_compute_block=at_once,
                          attn_logits_soft_cap=cap)
    k, v = [eight_bits.unquantize_from_int8(x) for x in given] if few else (k, v)
    k, v = [x[:, places].reshape(2, 3, 32, 128).swapaxes(0, 1).repeat(heads // 2, 1)
            for x in (k, v)]
    scores = jnp.einsum("bhd,bhkd->bhk", q, k).astype("float32")
    scores = scores if cap is None else cap * jnp.tanh(scores / cap)
    weights = jax.nn.softmax(jnp.where(jnp.arange(32) < lengths[:, None, None], scores, -1e30))
    want = jnp.einsum("bhk,bhkd->bhd", weights, v).astype(dtype)
    agree(got, want, 2e-5 if dtype == "float32" else 0.03)
    agree(grouped_query_attention_reference(q, k, v, lengths, cap), want,
          2e-5 if dtype == "float32" else 0.03)


def test_a_sequence_without_tokens_gets_zeros():
    pages = normal(1, 2, 8, 128)
    out = paged_attention(normal(1, 2, 128), pages, pages, jnp.array([0]), jnp.array([[0, 1]]),
                          pages_per_compute_block=1)
    np.testing.assert_array_equal(out, np.zeros((1, 2, 128)))


def test_eight_bits_are_nearly_enough():
    x = normal(4, 16)
    few = eight_bits.quantize_to_int8(x)
    assert few.weight.dtype == "int8"
    step = np.abs(x).max(1, keepdims=True) / 127
    assert (np.abs(eight_bits.unquantize_from_int8(few) - x) <= step).all()


# -- simple kernels --------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "out_dtype"), [
    ("float32", None), ("bfloat16", "float32"), ("int8", "int32")])
def test_a_product_by_blocks(dtype, out_dtype):
    x, y = (3 * normal(20, 64)).astype(dtype), (3 * normal(64, 24)).astype(dtype)
    agree(matmul(x, y, block_shape=(8, 16), block_k=32, out_dtype=out_dtype),
          jnp.matmul(x, y, preferred_element_type=out_dtype))
    agree(double(x), x * 2)


def test_dtypes_of_products_are_asked_for():
    with pytest.raises(TypeError, match="Cannot deduce output dtype for different input dtypes"):
        matmul(normal(8, 8), normal(8, 8, dtype="bfloat16"), block_shape=(8, 8))


PAGES, LENGTHS, PLACES = jnp.ones((2, 4, 8, 64)), jnp.array([3, 4]), jnp.zeros((2, 4), "int32")
Q, SIZES = jnp.ones((2, 2, 128, 64)), jnp.array([100, 28])


def paged(**changed):
    return paged_attention(**{
        "q": Q[0][:, :2], "k_pages": PAGES, "v_pages": PAGES, "lengths": LENGTHS,
        "page_indices": PLACES, "pages_per_compute_block": 2, **changed})


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
    (lambda: megablox.gmm(Q[0], Q[0], SIZES), "Expected 2-tensor for 'lhs' but got 3-tensor"),
    (lambda: megablox.gmm(Q[0, 0], Q[0], SIZES), "lhs have 64 elements, and the matrices of rhs"),
    (lambda: megablox.gmm(Q[0, 0, :100], Q[0].mT, SIZES), "100 must be divisible by x-dimension"),
    (lambda: megablox.gmm(Q[0, 0].astype("int8"), Q[0].mT, SIZES), "float32 array but got int8"),
    (lambda: megablox.gmm(Q[0, 0], Q[0].mT, SIZES * 1.0), "32-bit integer 'group_sizes' but got"),
    (lambda: megablox.gmm(Q[0, 0], Q[0].mT, SIZES, group_offset=SIZES), r"Got: \(2,\)"),
    (lambda: megablox.gmm(Q[0, 0], Q[0].mT, SIZES, existing_out=Q[0, 0]), r"expected \(128, 128\)"),
    (lambda: megablox.gmm(Q[0, 0], Q[0].mT, SIZES, tiling=lambda *mkn: None), "No tuned tiling"),
    (lambda: matmul(Q[0, 0], Q[0, 0], block_shape=(8, 8)), "x has 64 columns and y 128 rows"),
    (lambda: paged(pages_per_compute_block=3), "be divisible by pages per sequence. Got 3 and 4"),
    (lambda: paged(q=Q[0][:, :7]), "Number of Q heads must be divisible by number of KV heads"),
    (lambda: paged(q=Q[0][:, :2, :32]), "head_dim of Q must be the same as that of K/V. Got 32"),
    (lambda: paged(v_pages=PAGES[:1]), "k_pages and v_pages must have the same shape"),
    (lambda: paged(lengths=LENGTHS[:1]), "`lengths` and `q` must have the same batch size"),
    (lambda: paged(page_indices=PLACES[:1]), "`page_indices` and `q` must have the same batch"),
    (lambda: paged(lengths=LENGTHS * 1.0), "dtype of `lengths` must be int32. Got float32"),
    (lambda: paged(megacore_mode="both"), "megacore_mode must be one of"),
])
def test_mistakes(run, said):
    with pytest.raises(ValueError, match=said):
        run()
