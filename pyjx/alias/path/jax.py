"""Stands in for jax where this folder is on the path: in the processes that a program starts
which runs on pyjx."""

import importlib
import os
import sys

if os.environ.get("PYJX_AS_JAX", "1") not in ("", "0"):
    try:
        importlib.import_module("pyjx.as_jax")
    except ModuleNotFoundError as error:  # another Python, without pyjx
        if error.name != "pyjx":
            raise

if sys.modules["jax"] is not sys.modules.get("pyjx"):  # jax itself, if it is there
    sys.path[:] = [p for p in sys.path if p != os.path.dirname(os.path.abspath(__file__))]
    del sys.modules["jax"]
    importlib.import_module("jax")
