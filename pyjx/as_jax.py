"""`import pyjx.as_jax`, before anything imports jax: pyjx answers to the name `jax`."""

from __future__ import annotations

from pyjx import alias

alias.install()
