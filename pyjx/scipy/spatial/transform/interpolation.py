"""Rotations between rotations."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyjx import numpy as jnp
from pyjx.scipy.spatial.transform.rotations import Rotation


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
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
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
        return self.rotations[place] * Rotation.from_rotvec(
            self.rotvecs[place] * share[..., None])
