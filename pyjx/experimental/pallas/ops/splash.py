"""Splash attention: attention of one sequence with a mask for each head, whose blocks that nobody
sees are neither fetched nor computed; and these masks, which are never made as a whole.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pyjx import nn, tree_util
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.records import of_field
from pyjx.core.trace import Tracer
from pyjx.experimental.pallas.kernel_calls import interpreted
from pyjx.experimental.pallas.ops.attention_kernels import (
    LANES,
    MASK_VALUE,
    Blocks,
    How,
    Inputs,
    SegmentIds,
    Sizes,
    Tables,
    attention,
    check_block,
)
from pyjx.sharding import NamedSharding, PartitionSpec

# -- masks -----------------------------------------------------------------------------------------

Window = tuple[int | None, int | None]


class Mask:
    """Which queries see which keys. `mask[queries, keys]`, by slices, is a part of it as an array
    of bools; `|` and `&` join two masks.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of queries and of keys."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> np.ndarray:
        raise NotImplementedError

    def __bool__(self) -> NoReturn:
        raise NotImplementedError("Conversion to bool is unsupported. Could be caused by using "
                                  "logical instead of bitwise operations on masks.")

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)


@dataclass(frozen=True)
class _Joined(Mask):
    left: Mask
    right: Mask

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape:
            raise ValueError("Masks must have the same shape to be joined, got "
                             f"{self.left.shape} and {self.right.shape}.")

    shape = of_field("left.shape")


class LogicalOr(_Joined):
    """What one of two masks lets be seen."""

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.left[index] | self.right[index]


class LogicalAnd(_Joined):
    """What both of two masks let be seen."""

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.left[index] & self.right[index]


@dataclass(frozen=True)
class _OfPositions(Mask):
    """A mask that follows from the positions of queries and keys."""

    _shape: tuple[int, int]

    shape = of_field("_shape")

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Whether queries see keys, of their positions, a column and a row."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> np.ndarray:
        q, k = [np.arange(n)[part] for n, part in zip(self._shape, index, strict=True)]
        shape = (q.size, k.size)
        return np.broadcast_to(self.sees(q.reshape(-1, 1), k.reshape(1, -1)), shape)


class FullMask(_OfPositions):
    """All queries see all keys.

    Args:
      _shape: the numbers of queries and of keys.
    """

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.ones((1, 1), bool)


@dataclass(frozen=True, init=False)
class CausalMask(_OfPositions):
    """Queries see no later keys.

    Args:
      shape: the numbers of queries and of keys.
      offset: how much later queries are than their positions say.
      shard_count: accepted.

    >>> CausalMask((4, 4))[0:2, 0:3].tolist()
    [[True, False, False], [True, True, False]]
    """

    offset: int

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1) -> None:
        _set(self, _shape=shape, offset=offset)

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return q + self.offset >= k


@dataclass(frozen=True, init=False)
class LocalMask(_OfPositions):
    """Queries see keys that are near.

    Args:
      shape: the numbers of queries and of keys.
      window_size: how many keys before and behind its own a query sees; None for all.
      offset: how much later queries are than their positions say.
      shard_count: accepted.
    """

    window_size: Window
    offset: int

    def __init__(self, shape: tuple[int, int], window_size: Window, offset: int,
                 shard_count: int = 1) -> None:
        _set(self, _shape=shape, window_size=window_size, offset=offset)

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        before, behind = self.window_size
        seen = np.ones((1, 1), bool)
        if before is not None:
            seen = seen & (q + self.offset - before <= k)
        return seen if behind is None else seen & (q + self.offset + behind >= k)


@dataclass(frozen=True, init=False)
class ChunkedCausalMask(_OfPositions):
    """Queries see no later keys, and those of their own chunk alone.

    Args:
      shape: the numbers of queries and of keys.
      chunk_size: how long chunks are.
      shard_count: accepted.
    """

    chunk_size: int

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1) -> None:
        if chunk_size <= 0:
            raise ValueError(f"chunk_size must be positive, got {chunk_size}")
        _set(self, _shape=shape, chunk_size=chunk_size)

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return (q >= k) & (q // self.chunk_size == k // self.chunk_size)


def _set(mask: Mask, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(mask, name, value)


@dataclass(frozen=True, eq=False)
class NumpyMask(Mask):
    """A mask that is an array.

    Args:
      array: bools, of the shape (queries, keys).
    """

    array: np.ndarray

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or self.array.dtype != np.bool_:
            raise ValueError(f"NumpyMask: array must be a matrix of bools, got {self.array.dtype}"
                             f"{list(self.array.shape)}.")

    shape = of_field("array.shape")

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.array[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumpyMask) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))


@dataclass(frozen=True)
class MultiHeadMask(Mask):
    """A mask for each head.

    Args:
      masks: of one shape.
    """

    masks: Sequence[Mask]

    def __post_init__(self) -> None:
        if not self.masks:
            raise ValueError("MultiHeadMask: at least one mask is needed.")
        shapes = {mask.shape for mask in self.masks}
        if len(shapes) > 1 or len(self.masks[0].shape) != 2:
            raise ValueError(f"MultiHeadMask: masks must be of one shape (queries, keys), got "
                             f"{sorted(shapes)}.")

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.masks), *self.masks[0].shape

    def __getitem__(self, index: Any) -> np.ndarray:
        heads, *rest = index
        if isinstance(heads, int):
            return self.masks[heads][tuple(rest)]
        return np.stack([mask[tuple(rest)] for mask in self.masks[heads]])


# -- masks as arrays -------------------------------------------------------------------------------


def _whole(mask: Mask) -> np.ndarray:
    return np.array(mask[:, :])


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """The array of a `CausalMask`."""
    return _whole(CausalMask(shape, offset))


def make_local_attention_mask(shape: tuple[int, int], window_size: Window, *, offset: int = 0
                              ) -> np.ndarray:
    """The array of a `LocalMask`."""
    return _whole(LocalMask(shape, window_size, offset))


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """The array of a `ChunkedCausalMask`."""
    return _whole(ChunkedCausalMask(shape, chunk_size))


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> np.ndarray:
    """Random bools, of which so large a part is False.

    Args:
      shape: of the array.
      sparsity: from 0, all True, to 1.
      seed: an integer.
    """
    draw: Callable[..., Any] = np.random.RandomState(seed).binomial
    return draw(1, 1.0 - sparsity, shape).astype(np.bool_)  # type: ignore[no-any-return]


# -- kernels ---------------------------------------------------------------------------------------


class QKVLayout(enum.IntEnum):
    """Which axis of a block of queries, keys or values lies along lanes: accepted."""

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


@dataclass(frozen=True)
class BlockSizes:
    """How many queries and keys the kernels of splash attention take at a time.

    Args:
      block_q, block_kv: of queries and keys that a program of the forward kernel gets.
      block_kv_compute: how many keys of those it computes at once, by default all.
      block_q_dkv, block_kv_dkv, block_kv_dkv_compute: the same for the gradients of keys and
        values.
      block_q_dq, block_kv_dq: those for that of queries.
      use_fused_bwd_kernel: gradients by one kernel: there are two all the same, for which
        `block_q_dq` and `block_kv_dq` are those of keys then.
      q_layout, k_layout, v_layout: accepted.

    Raises:
      ValueError: what is computed at once does not divide what a program gets.
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    def __post_init__(self) -> None:
        given = [("block_kv_compute", self.block_kv), ("block_kv_dkv_compute", self.block_kv_dkv)]
        if self.use_fused_bwd_kernel:
            if self.block_q_dq is not None or self.block_kv_dq is not None:
                raise ValueError("Block sizes for dq kernel are not needed with a fused kernel.")
            given += [("block_q_dq", self.block_q_dkv), ("block_kv_dq", self.block_kv_dkv)]
        for name, default in given:
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        for name, whole in given[:2]:
            part = getattr(self, name)
            if part is not None and whole is not None:
                check_block(name, name.removesuffix("_compute"), part, whole)

    @property
    def has_backward_blocks(self) -> bool:
        """Whether all sizes that gradients need are there."""
        return None not in (self.block_q_dkv, self.block_kv_dkv, self.block_q_dq, self.block_kv_dq)

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Sizes for any array: 128 queries and keys."""
        return cls(*(LANES,) * 8)

    def sizes(self) -> tuple[Sizes, Sizes | None, Sizes | None]:
        """Those of the three kernels: the result, the gradients of keys, and those of queries."""
        forward: Any = (self.block_q, self.block_kv, self.block_q, self.block_kv_compute)
        if not self.has_backward_blocks:
            return Sizes(*forward), None, None
        keys: Any = (self.block_kv_dkv, self.block_q_dkv, self.block_kv_dkv_compute,
                     self.block_q_dkv, "block_kv_dkv", "block_q_dkv")
        queries: Any = (self.block_q_dq, self.block_kv_dq, self.block_q_dq, self.block_kv_dq,
                        "block_q_dq", "block_kv_dq")
        return Sizes(*forward), Sizes(*keys), Sizes(*queries)


# -- tables of blocks ------------------------------------------------------------------------------


class MaskInfo(NamedTuple):
    """Tables of the blocks of a mask, int32 of the shape (heads that differ, blocks of queries,
    blocks of keys).

    Args:
      data_next: which block a program fetches in its turn.
      mask_next: which of `partial_mask_blocks` says what is seen of a block of which a part is.
      block_mask: what is seen: 0 nothing, 1 a part, 2 all.
      partial_mask_blocks: int8, of the shape (any, rows, columns).
      q_sequence, is_dynamic_mask: None.
    """

    data_next: Any
    mask_next: Any
    block_mask: Any
    partial_mask_blocks: Any
    q_sequence: Any = None
    is_dynamic_mask: Any = None

    @property
    def blocks(self) -> Blocks:
        """As the kernels take them."""
        return Blocks(self.block_mask, self.data_next, self.mask_next, self.partial_mask_blocks)


def mask_info(mask: MultiHeadMask, queries: int, keys: int, of_keys: bool, head_shards: int,
              q_seq_shards: int) -> MaskInfo:
    """The tables of a mask, for blocks of so many queries and keys.

    Args:
      of_keys: for the kernel that has keys as rows and goes over queries.
      head_shards, q_seq_shards: over how many devices heads and queries are spread.
    """
    heads, rows, columns = mask.shape
    for name, of, n, count in (("head_shards", "heads", heads, head_shards),
                               ("q_seq_shards", "q_seq_len", rows // queries, q_seq_shards)):
        check_block(name, of, count, n)
    each = heads // head_shards
    shards = [mask.masks[k:k + each] for k in range(0, heads, each)]
    alike = all([m == shard[0] for shard in shards for m in shard])
    found = [shard[0] for shard in shards] if alike else [*mask.masks]
    seen = np.zeros((len(found), rows // queries, columns // keys), np.int32)
    which = np.zeros_like(seen)
    parts: dict[bytes, int] = {}
    masks: list[np.ndarray] = []
    known: dict[Mask, int] = {}
    for h, one in enumerate(found):
        if one in known:
            seen[h], which[h] = seen[known[one]], which[known[one]]
            continue
        known[one] = h
        for i, j in np.ndindex(*seen.shape[1:]):
            block = one[i * queries:(i + 1) * queries, j * keys:(j + 1) * keys]
            seen[h, i, j] = 2 if block.all() else int(block.any())
            if seen[h, i, j] == 1:
                block = np.ascontiguousarray(block.T if of_keys else block, np.int8)
                which[h, i, j] = parts.setdefault(block.tobytes(), len(masks))
                if which[h, i, j] == len(masks):
                    masks.append(block)
    shape = (keys, queries) if of_keys else (queries, keys)
    split = (len(found), q_seq_shards, -1, columns // keys)  # each device counts its own queries
    axis = 2 if of_keys else 3
    nearest = _nearest(seen.reshape(split) > 0, axis).reshape(seen.shape)
    partial_ = _nearest(seen.reshape(split) == 1, axis)
    masked = np.take_along_axis(which.reshape(split), partial_, axis).reshape(seen.shape)
    return MaskInfo(nearest, masked, seen,
                    np.stack(masks) if masks else np.zeros((1, *shape), np.int8))


def _nearest(wanted: np.ndarray, axis: int) -> np.ndarray:
    """For each place along the axis the next that is wanted, else the last one before; else 0."""
    n = wanted.shape[axis]
    places = np.arange(n, dtype=np.int32).reshape([-1 if k == axis else 1 for k in range(4)])
    after = np.flip(np.minimum.accumulate(np.flip(np.where(wanted, places, n), axis), axis), axis)
    before = np.maximum.accumulate(np.where(wanted, places, 0), axis)
    return np.where(after < n, after, before).astype(np.int32)


def process_mask(mask: MultiHeadMask, block_shape: tuple[int, int], is_dkv: bool = False, *,
                 downcast_smem_data: bool = True, head_shards: int = 1, q_seq_shards: int = 1,
                 shrink_grid: bool = True) -> tuple[MaskInfo, None]:
    """The tables of a mask, and None for the function that would say its elements.

    Args:
      mask: a `MultiHeadMask`.
      block_shape: how many queries and keys a block has.
      is_dkv: for the kernel that goes over queries.
      head_shards, q_seq_shards: over how many devices heads and queries are spread.
      downcast_smem_data, shrink_grid: accepted.
    """
    return mask_info(mask, *block_shape, is_dkv, head_shards, q_seq_shards), None


process_mask_dkv = partial(process_mask, is_dkv=True)


# -- the function ----------------------------------------------------------------------------------


class SplashAttentionKernel:
    """The function of queries, keys and values that `make_splash_mha` makes: a pytree, whose
    leaves are the tables of its mask, so that it may be an argument of `jit` and `shard_map`.

    Args:
      fwd_mask_info, dq_mask_info, dkv_mask_info: the tables of the three kernels.
      kwargs: what the kernels are made for.
    """

    def __init__(self, fwd_mask_info: MaskInfo, dq_mask_info: MaskInfo | None,
                 dkv_mask_info: MaskInfo | None, **kwargs: Any) -> None:
        self.fwd_mask_info, self.dq_mask_info = fwd_mask_info, dq_mask_info
        self.dkv_mask_info, self.kwargs = dkv_mask_info, kwargs

    def __call__(self, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None = None,
                 sinks: Array | None = None) -> Any:
        """softmax(q k^T) v for each head, where the mask lets keys be seen.

        Args:
          q: queries, of the shape (heads, queries, size), times what scores are to be scaled by.
          k, v: keys and values, of the shape (heads, keys, size), or of fewer heads, which so many
            of the queries share; (keys, size) for one of all.
          segment_ids: which queries see which keys: those of their own segment.
          sinks: a score for each head that takes part in the softmax and has no value.

        Returns:
          An array like `q`; with `save_residuals` a pair of it and a tuple of the logarithms of the
          sums of exponentials, of the shape (heads, queries).
        """
        how: How = self.kwargs["how"]
        k, v = [x[None] if self.kwargs["is_mqa"] else x for x in (k, v)]
        self._check(q, k, v, segment_ids)
        tables = Tables(*[None if m is None else m.blocks for m in (
            self.fwd_mask_info, self.dkv_mask_info, self.dq_mask_info)])
        ids = segment_ids and SegmentIds(*[x[None] for x in segment_ids])
        residuals = self.kwargs["save_residuals"]
        wanted = residuals or sinks is not None
        how = how._replace(sums=wanted, interpret=how.interpret or interpreted())
        out, sums = attention(how, Inputs(q[None], k[None], v[None], None, ids, tables))
        out = out[0]
        if sums is None:
            return out
        found = sums[0]
        if sinks is not None:  # each is one more exponential in the sum
            sink = jnp.asarray(sinks, np.float32)[:, None]
            out = (out * nn.sigmoid(found - sink)[..., None]).astype(out.dtype)
            found = jnp.logaddexp(found, sink)
        return (out, (found,)) if residuals else out

    def _check(self, q: Array, k: Array, v: Array, ids: SegmentIds | None) -> None:
        _, blocks, columns = self.fwd_mask_info.block_mask.shape
        forward: Sizes = self.kwargs["how"].forward
        expected = (blocks * forward.rows, columns * forward.columns)
        if q.ndim != 3 or k.ndim != 3 or v.ndim != 3:
            raise ValueError("splash attention: q, k and v must be of the shape (heads, length, "
                             f"size), got {q.shape}, {k.shape} and {v.shape}. Map a batch by "
                             "jax.vmap.")
        if (q.shape[1], k.shape[1]) != expected or k.shape[:2] != v.shape[:2]:
            raise ValueError(f"splash attention: the mask is of {expected[0]} queries and "
                             f"{expected[1]} keys, got q, k and v of the shapes {q.shape}, "
                             f"{k.shape} and {v.shape}.")
        if q.shape[0] != self.kwargs["heads"]:
            raise ValueError(f"splash attention: the mask is of {self.kwargs['heads']} heads on "
                             f"each device, got q of the shape {q.shape}. Give MultiHeadMask a "
                             "mask for each head of q.")
        if q.shape[2] != k.shape[2] or q.shape[0] % k.shape[0]:
            raise ValueError("splash attention: queries and keys are of one size, and the heads of "
                             f"queries a multiple of those of keys; got {q.shape} and {k.shape}.")
        if ids is not None and (ids.q.shape, ids.kv.shape) != (q.shape[1:2], k.shape[1:2]):
            raise ValueError(f"splash attention: segment ids are of the shapes {q.shape[1:2]} and "
                             f"{k.shape[1:2]}, got {ids.q.shape} and {ids.kv.shape}.")

    def manual_sharding_spec(self, sharding: NamedSharding) -> SplashAttentionKernel:
        """The kernel with a `PartitionSpec` in the place of each table, for `in_specs` of
        `jax.shard_map`.

        Args:
          sharding: how (heads, queries) are cut.
        """
        spec = sharding.spec
        if len(spec) != 2:
            raise ValueError(f"manual_sharding_spec: the spec is one of (heads, queries), got "
                             f"{spec}.")

        def specs(info: MaskInfo | None) -> MaskInfo | None:
            if info is None:
                return None
            heads = spec[0] if info.block_mask.shape[0] > 1 else None
            cut = PartitionSpec(heads, spec[1], None)
            return MaskInfo(cut, cut, cut, PartitionSpec())

        return SplashAttentionKernel(*map(specs, self._infos), **self.kwargs)  # type: ignore[arg-type]

    @property
    def _infos(self) -> tuple[MaskInfo | None, ...]:
        return self.fwd_mask_info, self.dq_mask_info, self.dkv_mask_info

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The tables, and the rest."""
        return self._infos, tuple(self.kwargs.items())

    @classmethod
    def tree_unflatten(cls, kwargs: Any, infos: Any) -> SplashAttentionKernel:
        """A kernel of its tables and the rest."""
        return cls(*infos, **dict(kwargs))


tree_util.register_pytree_node_class(SplashAttentionKernel)


def _make(mask: Any, *, block_sizes: BlockSizes | None = None, is_mqa: bool = False,
          save_residuals: bool = False, mask_value: float = MASK_VALUE,
          attn_logits_soft_cap: float | None = None, downcast_smem_data: bool = True,
          head_shards: int, q_seq_shards: int, residual_checkpoint_name: str | None = None,
          interpret: bool = False) -> SplashAttentionKernel:
    """Attention of one sequence with a mask for each head, by kernels for TPUs that neither fetch
    nor compute blocks of scores that nobody sees. Gradients, too, are kernels.

    Elsewhere it runs with `interpret=True`.

    Args:
      mask: a `MultiHeadMask`, or an array of bools of the shape (heads, queries, keys).
      block_sizes: of how many queries and keys; 128 each by default.
      is_mqa: whether all heads share keys and values, of the shape (keys, size).
      save_residuals: whether the logarithms of the sums of exponentials are a result, too.
      mask_value: the score of a key that is not seen, -1e30 or less.
      attn_logits_soft_cap: scores are `cap * tanh(scores / cap)`.
      head_shards, q_seq_shards: over how many devices heads and queries are spread.
      downcast_smem_data, residual_checkpoint_name: accepted.
      interpret: make XLA's operations of the kernels, on any platform.

    Raises:
      ValueError: block sizes do not divide the numbers of queries and keys, or scores may be as
        little as `mask_value`.
      NotImplementedError: the mask is traced.

    >>> import pyjx as jax
    >>> from pyjx.experimental.pallas.ops.tpu import splash_attention as splash
    >>> causal = splash.MultiHeadMask([splash.CausalMask((256, 256))] * 2)
    >>> attend = splash.make_splash_mha(causal, head_shards=1, q_seq_shards=1, interpret=True)
    >>> q = jax.random.normal(jax.random.key(0), (2, 256, 64))
    >>> out = attend(q, q, q)
    >>> bool(jax.numpy.allclose(out[:, 0], q[:, 0]))  # the first query sees the first key
    True
    """
    if mask_value > -1e30:
        raise ValueError(f"splash attention: mask_value={mask_value} is the score of a key that is "
                         "not seen, which no other one reaches: -1e30 or less.")
    if isinstance(mask, Tracer):
        raise NotImplementedError("splash attention: the mask is traced. Make it of a NumPy array, "
                                  "outside of jit.")
    if isinstance(mask, Mask) and not isinstance(mask, MultiHeadMask):
        raise ValueError(f"splash attention: a mask for each head is needed, got {mask!r} alone: "
                         "MultiHeadMask([mask] * heads).")
    if not isinstance(mask, MultiHeadMask):
        array = np.asarray(mask).astype(bool)
        if array.ndim != 3:
            raise ValueError("splash attention: a mask is of the shape (heads, queries, keys), got "
                             f"{array.shape}.")
        mask = MultiHeadMask([NumpyMask(m) for m in array])
    sizes = block_sizes or BlockSizes.get_default()
    forward, keys, queries = sizes.sizes()
    for name, of, n in (("block_q", "q_seq_len", mask.shape[1]),
                        ("block_kv", "kv_seq_len", mask.shape[2])):
        check_block(name, of, getattr(sizes, name), n)
    infos: list[MaskInfo | None] = []
    for one, of_keys in ((forward, False), (queries, False), (keys, True)):
        if one is None:
            infos.append(None)
            continue
        q, k = (one.columns, one.rows) if of_keys else (one.rows, one.columns)
        check_block(one.row_name or "block_q", "kv_seq_len" if of_keys else "q_seq_len", one.rows,
                    mask.shape[2 if of_keys else 1])
        check_block(one.column_name or "block_kv", "q_seq_len" if of_keys else "kv_seq_len",
                    one.columns, mask.shape[1 if of_keys else 2])
        infos.append(mask_info(mask, q, k, of_keys, head_shards, q_seq_shards))
    how = How(False, 1.0, interpret, forward, keys, queries, attn_logits_soft_cap,
              mask_value=mask_value, name="splash_attention")
    return SplashAttentionKernel(*infos, how=how, is_mqa=is_mqa,  # type: ignore[arg-type]
                                 save_residuals=save_residuals,
                                 heads=mask.shape[0] // head_shards)


make_splash_mha = partial(_make, is_mqa=False)
make_splash_mqa = partial(_make, is_mqa=True)
make_splash_mha_single_device = partial(_make, is_mqa=False, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = partial(_make, is_mqa=True, head_shards=1, q_seq_shards=1)


# -- without kernels -------------------------------------------------------------------------------


def attention_reference(mask: Any, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None,
                        sinks: Any = None, *, mask_value: float = MASK_VALUE,
                        save_residuals: bool = False, custom_type: str = "flash",
                        attn_logits_soft_cap: float | None = None) -> Any:
    """What a kernel computes of one head, without it.

    Args:
      mask: bools, of the shape (queries, keys).
      q, k, v: of the shapes (queries, size) and (keys, size).
      segment_ids, sinks, mask_value, save_residuals, attn_logits_soft_cap: as of the kernels; one
        number is the sink.
      custom_type: accepted.
    """
    scores = jnp.einsum("sd,td->st", q.astype(np.float32), k.astype(np.float32))
    if attn_logits_soft_cap is not None:
        scores = attn_logits_soft_cap * jnp.tanh(scores / attn_logits_soft_cap)
    seen = jnp.asarray(mask)
    if segment_ids is not None:
        seen = seen & (segment_ids.q[:, None] == segment_ids.kv[None, :])
    scores = jnp.where(seen, scores, mask_value)
    if sinks is not None:
        sink = jnp.full((scores.shape[0], 1), sinks, np.float32)
        scores = jnp.concatenate([scores, sink], 1)
    weights = nn.softmax(scores, axis=1)[:, :k.shape[0]]
    out = jnp.einsum("st,td->sd", weights, v.astype(np.float32)).astype(q.dtype)
    return (out, (nn.logsumexp(scores, axis=1),)) if save_residuals else out


def make_attention_reference(mask: Any, is_mqa: bool, backward_impl: str = "vanilla",
                             **params: Any) -> Callable[..., Any]:
    """The function of all heads that `attention_reference` is of one.

    Args:
      mask: a `MultiHeadMask` or an array of the shape (heads, queries, keys).
      is_mqa: whether all heads share keys and values.
      backward_impl: accepted.
      params: as of `attention_reference`.
    """
    whole = mask[:, :, :] if isinstance(mask, MultiHeadMask) else np.asarray(mask)

    def attend(q: Array, k: Array, v: Array, segment_ids: SegmentIds | None = None,
               sinks: Array | None = None) -> Any:
        heads = q.shape[0]
        k, v = [jnp.stack([x] * heads) if is_mqa else jnp.repeat(x, heads // x.shape[0], 0)
                for x in (k, v)]
        outs = [attention_reference(whole[h], q[h], k[h], v[h], segment_ids,
                                    None if sinks is None else sinks[h], **params)
                for h in range(heads)]
        return tree_util.tree_map(lambda *parts: jnp.stack(parts), *outs)

    return attend


make_masked_mha_reference = partial(make_attention_reference, is_mqa=False)
make_masked_mqa_reference = partial(make_attention_reference, is_mqa=True)
