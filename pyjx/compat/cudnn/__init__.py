"""`jax._src.cudnn`: kernels of cuDNN."""

from __future__ import annotations
