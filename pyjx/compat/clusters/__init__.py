"""`jax._src.clusters`: what launchers of processes tell them."""

from __future__ import annotations

from pyjx.compat.clusters.cluster import ClusterEnv

__all__ = ["ClusterEnv"]
