"""Launchers of processes that libraries make known (`jax._src.clusters`)."""

from __future__ import annotations

import os
from typing import Any

from pyjx.runtime import clusters

__all__ = ["ClusterEnv"]


class ClusterEnv:
    """A launcher of processes, by which `jax.distributed.initialize` finds out its arguments.

    A class derived from it is known from then on, behind the launchers that there are.

    Attributes:
      name: what `cluster_detection_method` calls it.
      opt_in_only_method: it is used only where it is asked for.

    >>> known = clusters.CLUSTERS
    >>> class Mine(ClusterEnv):
    ...     name = "mine"
    ...     @classmethod
    ...     def is_env_present(cls):
    ...         return True
    ...
    >>> clusters.detect("mine").name
    'mine'
    >>> clusters.CLUSTERS = known
    """

    name: str = ""
    opt_in_only_method: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        clusters.CLUSTERS += (clusters.Cluster(
            cls.name, lambda: cls.is_env_present(),
            lambda timeout: cls.get_coordinator_address(
                timeout_secs=timeout,
                override_coordinator_port=os.environ.get("JAX_COORDINATOR_PORT")),
            lambda: cls.get_process_count(), lambda: cls.get_process_id(),
            lambda: cls.get_local_process_id(), cls.opt_in_only_method),)

    @classmethod
    def is_env_present(cls) -> bool:
        """Whether it launched this process."""
        raise NotImplementedError("ClusterEnv subclasses must implement is_env_present")

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int | None,
                                override_coordinator_port: str | None) -> str:
        """Where process 0 coordinates the others: host:port."""
        raise NotImplementedError("ClusterEnv subclasses must implement get_coordinator_address")

    @classmethod
    def get_process_count(cls) -> int:
        """How many processes there are."""
        raise NotImplementedError("ClusterEnv subclasses must implement get_process_count")

    @classmethod
    def get_process_id(cls) -> int:
        """Which one this is."""
        raise NotImplementedError("ClusterEnv subclasses must implement get_process_id")

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Which one it is on its host, where each has a device of its own; None where not."""
        return None
