"""`python walk.py LIBRARY` imports every module of a library, and prints which fail and why."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import warnings

os.environ.setdefault("KERAS_BACKEND", "jax")
warnings.simplefilter("ignore")


def is_test(name: str) -> bool:
    return name in ("__main__", "conftest", "test", "tests") or (
        name.startswith("test_") or name.endswith("_test"))


def walk(name: str, failed: dict[str, list[str]]) -> None:
    """Import a module and what is below it. What fails goes to `failed`: the type of the error, the
    module that was missing, and the text."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # a module may call sys.exit
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        failed[name] = [type(error).__name__, missing or "", str(error)[:500]]
        return
    places = module.__spec__ and module.__spec__.submodule_search_locations
    for found in pkgutil.iter_modules(places or (), f"{name}."):
        if not is_test(found.name.rpartition(".")[2]):
            walk(found.name, failed)


if __name__ == "__main__":
    failed: dict[str, list[str]] = {}
    library, sys.argv = sys.argv[1], sys.argv[1:]
    walk(library, failed)
    print("\n" + json.dumps(failed), flush=True)
    os._exit(0)  # threads that a module has started are not waited for
