"""Rotations of three-dimensional space, as unit quaternions (x, y, z, w); `Slerp` between them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import numpy as jnp
from pyjx import random
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.value_texts import in_short
from pyjx.numpy.promotion import promote_dtypes_inexact, strong


def _floats(x: ArrayLike) -> Array:
    return promote_dtypes_inexact(jnp.asarray(x))[0]  # type: ignore[no-any-return]


def _vectors(name: str, x: ArrayLike, size: int) -> Array:
    """An argument of shape (..., size), as floats."""
    x = _floats(x)
    if x.ndim == 0 or x.shape[-1] != size:
        raise ValueError(f"Rotation.{name}: expected an array of shape (..., {size}), got "
                         f"{x.shape}.")
    return x


def _normalized(x: Array) -> Array:
    return x / jnp.sqrt(jnp.vecdot(x, x))[..., None]


def _product(p: Array, q: Array) -> Array:
    """Hamilton's product: the rotation q, then p."""
    v, w = p[..., :3], p[..., 3:]
    u, s = q[..., :3], q[..., 3:]
    return jnp.concatenate([w * u + s * v + jnp.cross(v, u),
                            w * s - (v * u).sum(-1, keepdims=True)], -1)


def _half_sine_ratio(square: Array) -> Array:
    """sin(a/2)/a for the square of an angle a."""
    small = square < 1e-6
    angle = jnp.sqrt(jnp.where(small, 1, square))
    return jnp.where(small, 0.5 - square / 48, jnp.sin(angle / 2) / angle)


def _about_axis(axis: int, angle: Array) -> Array:
    parts = [jnp.zeros_like(angle)] * 3
    parts[axis] = jnp.sin(angle / 2)
    return jnp.stack([*parts, jnp.cos(angle / 2)], -1)


def _axes_of(seq: str) -> tuple[list[int], bool]:
    """The axes of a sequence such as "xyz", and whether they are fixed in space."""
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", seq):
        raise ValueError("Expected axis specification to be a non-empty string of upto 3 "
                         "characters, all of 'xyz' or all of 'XYZ', got " + seq)
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(c) for c in seq.lower()], seq.islower()


class Rotation(NamedTuple):
    """A rotation, or several: make them by `from_quat`, `from_matrix`, ... .

    Attributes:
      quat: array of shape (4,) or (n, 4): unit quaternions (x, y, z, w).

    >>> import pyjx as jax
    >>> R = jax.scipy.spatial.transform.Rotation
    >>> quarter = R.from_euler("z", jax.numpy.array(90.0), degrees=True)
    >>> [round(float(x), 3) + 0.0 for x in quarter.apply(jax.numpy.array([1.0, 0.0, 0.0]))]
    [0.0, 1.0, 0.0]
    """

    quat: Any

    # -- makers ------------------------------------------------------------------------------------

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Rotations one after the other."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From angles about axes.

        Args:
          seq: up to three axes: "xyz" about axes fixed in space, "XYZ" about those that rotate.
          angles: array of shape (..., len(seq)), or (...) for one axis.
          degrees: whether they are degrees.

        Raises:
          ValueError: `seq` is no such sequence, or the number of angles differs.
        """
        axes, fixed = _axes_of(seq)
        angles = strong(_floats(angles))
        angles = jnp.deg2rad(angles) if degrees else angles
        if len(axes) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1):
            angles = angles[..., None]
        if angles.ndim == 0 or angles.shape[-1] != len(axes):
            raise ValueError(f"expected {len(axes)} angles for the axes {seq}, got shape "
                             f"{angles.shape}")
        quat: Any = None
        for i, axis in enumerate(axes):
            part = _about_axis(axis, angles[..., i])
            quat = part if quat is None else (_product(part, quat) if fixed
                                              else _product(quat, part))
        return cls(quat)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """From orthogonal matrices, of shape (..., 3, 3); of larger square ones, such as those of
        affine maps, the first three rows and columns count.

        Raises:
          ValueError: they have another shape.
        """
        m = _floats(matrix)
        if m.ndim < 2 or m.shape[-1] != m.shape[-2] or m.shape[-1] < 3:
            raise ValueError("Rotation.from_matrix: expected matrices of shape (..., 3, 3), got "
                             f"{m.shape}.")
        m = m[..., :3, :3]
        trace = jnp.trace(m, axis1=-2, axis2=-1)
        diagonal = jnp.diagonal(m, axis1=-2, axis2=-1)
        # four times the products of each component with all: the largest row is the precise one
        rows = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            row = [jnp.zeros_like(trace)] * 4
            row[i] = 1 - trace + 2 * m[..., i, i]
            row[j], row[k] = m[..., j, i] + m[..., i, j], m[..., k, i] + m[..., i, k]
            row[3] = m[..., k, j] - m[..., j, k]
            rows.append(jnp.stack(row, -1))
        rows.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0],
                               m[..., 1, 0] - m[..., 0, 1], 1 + trace], -1))
        best = jnp.argmax(jnp.concatenate([diagonal, trace[..., None]], -1), -1)
        chosen = jnp.take_along_axis(jnp.stack(rows, -2), best[..., None, None], -2)[..., 0, :]
        return cls(_normalized(chosen))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """From modified Rodrigues parameters, of shape (..., 3): axis * tan(angle/4).

        Raises:
          ValueError: they have another shape.
        """
        mrp = _vectors("from_mrp", mrp, 3)
        square = (mrp * mrp).sum(-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """From quaternions (x, y, z, w) of any norm, of shape (..., 4).

        Raises:
          ValueError: they have another shape.
        """
        return cls(_normalized(_vectors("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """From vectors of shape (..., 3) along the axis, as long as the angle.

        Raises:
          ValueError: they have another shape.
        """
        v = _vectors("from_rotvec", rotvec, 3)
        v = jnp.deg2rad(v) if degrees else v
        square = (v * v).sum(-1, keepdims=True)
        small = square < 1e-6
        cosine = jnp.where(small, 1 - square / 8 + square * square / 384,
                           jnp.cos(jnp.sqrt(jnp.where(small, 1, square)) / 2))
        return cls(jnp.concatenate([v * _half_sine_ratio(square), cosine], -1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike | None = float) -> Rotation:
        """The rotation that changes nothing, `num` times."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: KeyLike, num: int | None = None) -> Rotation:
        """Uniformly distributed rotations."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    # -- other forms -------------------------------------------------------------------------------

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes, in [-pi, pi]; the middle one in [-pi/2, pi/2] or [0, pi].

        E. Bernardes and S. Viollet, Quaternion to Euler angles conversion (2022). In gimbal lock
        the third angle is 0.
        """
        axes, fixed = _axes_of(seq)
        if len(axes) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        i, j, k = axes if fixed else axes[::-1]
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = strong(self.quat)
        x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
        a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_gap = jnp.arctan2(b, a), jnp.arctan2(d, c)
        tiny = 1e-7 if q.dtype == np.float64 else 1e-3
        at_start, at_end = jnp.abs(middle) <= tiny, jnp.abs(middle - math.pi) <= tiny
        first, third = half_sum - half_gap, half_sum + half_gap
        first, third = (first, third) if fixed else (third, first)
        locked = jnp.where(at_start, 2 * half_sum, 2 * half_gap * (-1 if fixed else 1))
        lock = at_start | at_end
        first, third = jnp.where(lock, locked, first), jnp.where(lock, 0, third)
        if not symmetric:
            middle = middle - math.pi / 2
            first, third = (first, third * sign) if fixed else (first * sign, third)
        out = jnp.stack([first, middle, third], -1)
        out = jnp.where(out < -math.pi, out + 2 * math.pi,
                        jnp.where(out > math.pi, out - 2 * math.pi, out))
        return jnp.rad2deg(out) if degrees else out

    def as_matrix(self) -> Array:
        """Matrices of shape (..., 3, 3)."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return strong(jnp.stack([jnp.stack(row, -1) for row in rows], -2))

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, of shape (..., 3)."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors of shape (..., 3) along the axis, as long as the angle."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        v, w = q[..., :3], q[..., 3:]
        square = jnp.vecdot(v, v)[..., None]
        small = square < 1e-6
        sine = jnp.sqrt(jnp.where(small, 1, square))
        out = v * jnp.where(small, 2 + square / 3, 2 * jnp.arctan2(sine, w) / sine)
        return jnp.rad2deg(out) if degrees else out

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions of shape (..., 4): (x, y, z, w), or with `scalar_first` (w, x, y, z).

        `canonical` gives, of q and -q, that whose w (or else first other part) is positive.
        """
        q = self.quat
        if canonical:
            order = q[..., jnp.array([3, 0, 1, 2])]
            first = jnp.take_along_axis(order, jnp.argmax(order != 0, -1)[..., None], -1)
            q = jnp.where(first < 0, -q, q)
        return jnp.roll(q, 1, -1) if scalar_first else q

    # -- operations --------------------------------------------------------------------------------

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors of shape (..., 3), rotated.

        Raises:
          ValueError: they have another shape, or are not as many as the rotations.
        """
        vectors = jnp.asarray(vectors)
        if vectors.ndim == 0 or vectors.shape[-1] != 3:
            raise ValueError("Rotation.apply: expected vectors of shape (..., 3), got "
                             f"{vectors.shape}.")
        try:
            np.broadcast_shapes(self.quat.shape[:-1], vectors.shape[:-1])
        except ValueError:
            raise ValueError(f"Rotation.apply: rotations of shape {self.quat.shape[:-1]} and "
                             f"vectors of shape {vectors.shape} are not as many. All vectors, each "
                             "rotated by all of a list: give vectors[..., None, :].") from None
        matrix = self.as_matrix()
        return jnp.einsum("...kj,...k->...j" if inverse else "...jk,...k->...j", matrix, vectors,
                          precision="highest")

    def inv(self) -> Rotation:
        """The inverse."""
        return Rotation(jnp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], -1))

    def magnitude(self) -> Array:
        """The angle, in [0, pi]."""
        v = self.quat[..., :3]
        sine = jnp.sqrt(jnp.vecdot(v, v))
        return 2 * jnp.arctan2(sine, jnp.abs(self.quat[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The mean: the quaternion with the largest sum of squared products with all.

        Raises:
          ValueError: the weights are not as many as the rotations.
        """
        q = jnp.atleast_2d(self.quat)
        weights = jnp.ones(q.shape[0], q.dtype) if weights is None else jnp.asarray(weights)
        if weights.shape != (q.shape[0],):
            raise ValueError("Expected `weights` to have number of values equal to number of "
                             f"rotations, got {weights.shape[0] if weights.ndim else 1} values and "
                             f"{q.shape[0]} rotations.")
        moments = jnp.einsum("n,ni,nj->ij", weights, q, q, precision="highest")
        return Rotation(jnp.linalg.eigh(moments)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation."""
        return bool(self.quat.ndim == 1)

    def __getitem__(self, index: Any) -> Rotation:  # type: ignore[override]
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[index])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self.quat.shape[0])

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Any) -> Rotation:  # type: ignore[override]
        if not isinstance(other, Rotation):
            raise TypeError(f"Rotation * other: other must be a Rotation, got {in_short(other)}. "
                            "Vectors are rotated by r.apply(vectors).")
        return Rotation(_product(self.quat, other.quat))


class Slerp(NamedTuple):
    """Spherical linear interpolation: make it by `init`.

    >>> import pyjx as jax
    >>> transform = jax.scipy.spatial.transform
    >>> ends = transform.Rotation.from_euler("z", jax.numpy.array([0.0, 90.0]), degrees=True)
    >>> slerp = transform.Slerp.init(jax.numpy.array([0.0, 1.0]), ends)
    >>> round(float(slerp(0.5).as_euler("xyz", degrees=True)[2]), 3)
    45.0
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation between rotations at increasing times.

        Raises:
          ValueError: there are fewer than two, or not as many times as rotations.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times)
        times = times if jnp.issubdtype(times.dtype, jnp.inexact) else times.astype(float)
        if times.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got "
                             f"{times.ndim} dimensions.")
        if times.shape[0] != len(rotations):
            raise ValueError("Expected number of rotations to be equal to number of timestamps "
                             f"given, got {len(rotations)} rotations and {times.shape[0]} "
                             "timestamps.")
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times, a scalar or an array of shape (n,)."""
        times = jnp.asarray(times, self.times.dtype)
        place = jnp.clip(jnp.searchsorted(self.times, times, side="right") - 1, 0,
                         len(self.timedelta) - 1)
        share = (times - self.times[place]) / self.timedelta[place]
        return self.rotations[place] * Rotation.from_rotvec(self.rotvecs[place] * share[..., None])
