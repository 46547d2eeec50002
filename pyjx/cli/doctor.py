"""`python -m pyjx doctor`: what is installed, found and in use, and whether it works.

The exit status is 1 where something is broken.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import pyjx as jax
from pyjx import alias, configuration, jaxlib_api
from pyjx.cli import programs
from pyjx.core.value_texts import size_text
from pyjx.jax_imports import under_alias
from pyjx.lazy import deferred
from pyjx.runtime import backends, cache
from pyjx.states import states
from pyjx.version import PYJX_VERSION

alias_files = deferred("pyjx.cli.alias_files")

Section = dict[str, Any]

_PACKAGES = ("numpy", "scipy", "ml_dtypes", "opt_einsum")
_INSTALL = {"cuda": f"'jax-cuda13-plugin[with-cuda]=={jaxlib_api.JAXLIB_RELEASE}'",
            "tpu": backends.libtpu_requirement()}
_PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin", "jax-rocm7-plugin", "libtpu")


def versions() -> Section:
    """What is installed, by the name of the package."""
    found = {"pyjx": PYJX_VERSION, "jaxlib": jaxlib_api.JAXLIB_RELEASE,
             "python": platform.python_version(), "system": platform.platform()}
    for name in (*_PACKAGES, *_PLUGINS):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if name in _PACKAGES:
                found[name] = "not installed"
    return found


def name_of_jax(problems: list[str]) -> Section:
    """Whether a package jax is installed, and what `import jax` gives."""
    context = metadata.DistributionFinder.Context(name="jax")
    own = [d.version for d in metadata.MetadataPathFinder.find_distributions(context)]
    try:
        told = alias.told_version()
    except ValueError as error:
        told = "nothing"
        problems.append(str(error))
    made = all([(alias_files.folder() / name).is_file() for name in alias_files.NAMES])
    ways = "`python -m pyjx FILE`, or `import pyjx.as_jax` first"
    if under_alias():
        gives = f"pyjx, told as jax {told}"
    elif made and _is_asked():
        gives = f"pyjx, told as jax {told}, as {alias.VARIABLE} is set"
    elif made:
        gives = f"pyjx where {alias.VARIABLE}=1 is set, which it is not; elsewhere by {ways}"
    else:
        if _is_asked():
            ways += f"; {alias.VARIABLE} is set, which counts after `python -m pyjx install-alias`"
        gives = f"{'that package' if own else 'nothing'}; pyjx by {ways}"
    return {"package jax": own[0] if own else "not installed", "import jax": gives,
            "install-alias": "done" if made else "not done"}


def _is_asked() -> bool:
    return os.environ.get(alias.VARIABLE) not in (None, "", "0")


def platforms(problems: list[str]) -> Section:
    """The backend in use, and why the others are not."""
    found: Section = {}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client = backends.get_backend()
    except RuntimeError as error:
        problems.append(str(error))
        return {"none": str(error)}
    devices = client.local_devices()
    kinds = ", ".join(sorted({d.device_kind for d in devices}))
    found[client.platform] = f"in use: {len(devices)} x {kinds}"
    version = " ".join(str(client.platform_version).split())
    if client.platform != "cpu":
        library = backends.plugin_library(client.platform)
        found[f"{client.platform} plugin"] = f"{library} ({version})"
    for name, reason in backends.report().items():
        advice = _INSTALL.get(name) if "not installed" in reason and backends.has_hardware(name) \
            else None
        found[name] = f"not in use: {reason}" + (
            f"; its hardware is here: pip install {advice}" if advice else "")
    driver = _nvidia_driver()
    if driver:
        found["driver"] = driver
    problems += [str(w.message) for w in caught]  # hardware that is there but cannot be used
    return found


def _nvidia_driver() -> str:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as f:
            return " ".join(f.readline().split())
    except OSError:
        return ""


def disk_cache(problems: list[str]) -> Section:
    """The folder with compiled programs."""
    if not (configuration.cache.value and configuration.enable_compilation_cache.value):
        return {"state": "switched off"}
    folder = cache.folder()
    if folder is None:
        wanted = cache.wanted_folder() or "no folder"
        problems.append(f"the disk cache cannot be used: {wanted} is not a folder that this user "
                        "alone may write to. PYJX_CACHE_DIR names another, PYJX_CACHE=0 does "
                        "without.")
        return {"state": "cannot be used", "folder": wanted}
    entries, size = cache.contents(folder)
    return {"state": "in use", "folder": folder, "programs": entries, "bytes": size,
            "size": f"{size_text(size)} of at most {size_text(cache.maximum_bytes())}"}


def flags() -> Section:
    """Flags that differ from their default, and variables of the environment that matter."""
    found: Section = {
        name: repr(state.value) for name, state in states.items()
        if state.value != state.default}
    known = {state.environ for state in states.values()}
    for name in sorted(os.environ):
        if name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS", alias.VARIABLE) or name.startswith(
                "XLA_PYTHON_CLIENT_"):
            found[name] = os.environ[name]
        elif name.startswith(("JAX_", "PYJX_")) and name not in known:
            found[name] = f"{os.environ[name]} (no flag reads this variable)"
    return found


def self_test(problems: list[str]) -> Section:
    """Each step of a small program, with the seconds that it took."""
    jnp = jax.numpy

    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    w, x = jnp.ones(3) * 0.5, jnp.ones((4, 3))
    step = jax.jit(jax.value_and_grad(loss))
    made: dict[str, Any] = {}

    def trace() -> None:
        made["traced"] = jax.jit(loss).trace(w, x)

    def grad() -> None:
        made["grad"] = step.trace(w, x)

    def compile_() -> None:
        made["compiled"] = made["grad"].lower().compile()

    def run() -> None:
        value, slope = made["compiled"](w, x)
        # sum of 4 tanh(1.5)^2; its slope is 8 tanh(1.5) (1 - tanh(1.5)^2)
        if abs(float(value) - 3.277200) > 1e-3 or abs(float(slope[0]) - 1.308405) > 1e-3:
            raise ArithmeticError(f"wrong result: {value}, {slope}")

    found: Section = {}
    steps: dict[str, Callable[[], None]] = {
        "trace": trace, "grad": grad, "compile": compile_, "run": run}
    for name, work in steps.items():
        start = time.perf_counter()
        try:
            work()
        except Exception as error:
            problems.append(f"self-test, {name}: {type(error).__name__}: {error}")
            found[name] = {"ok": False, "seconds": time.perf_counter() - start}
            break
        found[name] = {"ok": True, "seconds": time.perf_counter() - start}
    return found


def examine() -> dict[str, Any]:
    """All sections, and a list of what is broken under `problems`."""
    problems: list[str] = []
    found: dict[str, Any] = {"versions": versions(), "the name jax": name_of_jax(problems),
                             "backends": platforms(problems),
                             "cache": disk_cache(problems), "flags": flags()}
    found["self-test"] = {} if "none" in found["backends"] else self_test(problems)
    found["problems"] = problems
    return found


def text(report: dict[str, Any]) -> str:
    """The report to read."""
    lines = []
    for section in ("versions", "the name jax", "backends", "cache", "flags", "self-test"):
        lines.append(section)
        rows = {k: v for k, v in report[section].items() if (section, k) != ("cache", "bytes")}
        width = max(map(len, rows), default=0)
        for name, value in rows.items():
            if isinstance(value, dict):
                value = f"{'ok' if value['ok'] else 'FAILED'}, {value['seconds'] * 1e3:.1f} ms"
            lines.append(f"  {name:{width}}  {value}")
        if not rows:
            lines.append("  all have their default values" if section == "flags" else "  none")
    problems = report["problems"]
    lines += [f"problem: {p}" for p in problems] or ["everything works"]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where something is broken."""
    parser = programs.Parser(
        prog="python -m pyjx doctor",
        description="Say what is installed, found and in use, and whether it works.")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    options = parser.parse_args(arguments)
    report = examine()
    print(json.dumps(report, indent=2) if options.json else text(report))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
