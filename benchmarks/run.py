"""Measures pyjx beside jax, in alternating processes, and prints medians, ratios and bars.

    python benchmarks/run.py --jax-python PATH --pyjx-python PATH [--only import,eager] [--rounds N]

The interpreters may be the same or two; each needs its library and the same jaxlib, and the one
for jax none of pyjx. Every figure is the median over `--rounds` processes; a ratio is pyjx / jax.
Compile times are measured without pyjx's disk cache, but for the case `warm`. A line that ends with
a bar and `over` misses it; the exit status is 1 then, so that a script can tell.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOISE = 0.05  # what a ratio of equal programs varies by, in the bars that allow for it
UNITS = {
    "peak memory": (2.0**20, "MiB"),
    "eager": (1, "us"),
    "transforms": (1, "us"),
    "numpy60": (1, "us"),
    "iteration": (1, "us"),
    "jit": (1, "us"),
    "callbacks": (1, "us"),
    "linalg": (1, "us"),
    "devices": (1, "us"),
    "linear": (1, "us/eqn"),
    "equations": (1, ""),
    "text_bytes": (2.0**10, "KiB"),
}

Figures = dict[str, Any]
Key = tuple[str, str]  # group and figure


@dataclass(frozen=True)
class Process:
    """One worker process of a group: which measurement, its options, how often at most."""

    group: str
    case: str
    options: dict[str, Any] = field(default_factory=dict)
    at_most: int = 99
    cached: bool = False


def model_group(model: str, **options: Any) -> list[Process]:
    flags = [key for key, value in options.items() if value is True]
    layers = [str(options["layers"])] if "layers" in options else []
    name = " ".join([*flags, model, *layers])
    options = {"model": model, **options}
    return [Process(name, case, options) for case in ("make_jaxpr", "stages", "run")]


GROUPS: dict[str, list[Process]] = {
    "import": [Process("import", "import")],
    "eager": [Process("eager", "eager")],
    "numpy60": [Process("numpy60", "numpy60")],
    "fifty": [Process("fifty operations", "fifty")],
    "iteration": [Process("iteration", "iteration")],
    "transforms": [Process("transforms", "transforms")],
    "jit": [Process("jit", "jit")],
    "callbacks": [Process("callbacks", "callbacks")],
    "linalg": [Process("linalg", "linalg")],
    "linear": [Process("linear", "linear", at_most=2)],
    "transformer": model_group("transformer", layers=12),
    "resnet50": model_group("resnet50"),
    "lstm": model_group("lstm"),
    "hessian": model_group("hessian"),
    "scan": [*model_group("lstm", scan=True), *model_group("transformer", layers=12, scan=True)],
    "remat": [*model_group("transformer", layers=12, remat=True),
              *model_group("transformer", layers=12, remat=True, scan=True)],
    "composed": [*model_group("per_example"), *model_group("hessian_product")],
    "loops": [p for model in ("while_loop", "batched_cond", "long_scan")
              for p in model_group(model)],
    "devices": [Process("devices", "devices", {"sharded": True}),
                *model_group("transformer", layers=12, sharded=True)],
    "growth": [
        Process(f"transformer {n}", "stages", {"model": "transformer", "layers": n}, at_most=2)
        for n in (3, 6, 24)
    ],
    "warm": [Process("warm cache", "process", {"model": "transformer", "layers": 12}, cached=True)],
    "first": [Process("two layers", "process", {"model": "transformer", "layers": 2})],
}

BARS: dict[Key, float] = {
    ("import", "import"): 0.5,
    **{("eager", op): 0.9 for op in ("b + b", "b * 2.0", "where")},
    **{("eager", op): 1.05 for op in ("exp", "sum", "matmul")},
    **{
        ("eager", op): 0.30
        for op in (
            *("a[0]", "a[1:3]", "a[:, i]", ".at[0].set", "zeros", "array (list)", "array (numpy)"),
            *("float(b[0])", "random.split", "reshape", "concatenate"),
        )
    },
    ("numpy60", "geometric mean"): 0.50,
    ("numpy60", "worst"): 1.05,
    ("fifty operations", "all"): 0.60,
    **{
        ("iteration", what): 0.50
        for what in ("vector of 1000", "matrix of 1000 rows", "integers")
    },
    ("transforms", "grad(f)(x)"): 0.20,
    ("transforms", "grad(jit(f))(x)"): 0.15,
    ("transforms", "vmap(f)(x)"): 0.20,
    ("jit", "one array"): 1.05,
    ("jit", "100 leaves"): 1.05,
    **{("callbacks", name): 1.0 + NOISE
       for name in ("jit debug", "jit debug ordered", "jit pure", "eager pure")},
    **{
        ("linalg", f"{how}{name} {size}"): 1.0 + NOISE
        for how in ("", "jit ")
        for name in ("cholesky", "solve", "eigh", "svd", "qr")
        for size in ("8", "512", "64 x 8")
    },
    ("transformer 12", "make_jaxpr"): 0.20,
    ("transformer 12", "trace + lower"): 0.20,
    ("transformer 12", "compile"): 0.25,
    ("transformer 12", "first call"): 0.25,
    ("transformer 12", "step"): 0.9,
    ("transformer 12", "peak memory"): 0.9,
    ("transformer 24", "compile"): 0.12,
    ("transformer 24", "step"): 0.6,
    **{(model, "step"): 1.0 + NOISE for model in ("resnet50", "lstm", "hessian")},
    **{
        (model, figure): bar
        for model in ("scan lstm", "scan transformer 12", "remat transformer 12",
                      "remat scan transformer 12", "per_example", "hessian_product")
        for figure, bar in (("trace + lower", 0.20), ("step", 1.0 + NOISE))
    },
    **{(model, "step"): 1.0 + NOISE for model in ("while_loop", "batched_cond", "long_scan")},
    ("long_scan", "peak memory"): 1.0 + NOISE,
    ("devices", "eager multiplication"): 0.50,
    **{
        ("devices", figure): 1.0 + NOISE
        for figure in ("jit", "jit with a collective", "device_put of a host array",
                       "device_put of a copy to each", "resharding")
    },
    ("sharded transformer 12", "trace + lower"): 0.20,
    ("warm cache", "to first step"): 0.35,
    ("two layers", "to first step"): 0.50,
}


@dataclass(frozen=True)
class Side:
    """A library, the interpreter that it runs in and the module that is measured."""

    library: str
    python: str
    module: str

    def environment(self, cache: str | None) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYJX_", "JAX_"))}
        path = {"PYTHONPATH": str(HERE.parent)} if self.module == "pyjx" else {}
        caching = {"PYJX_CACHE_DIR": cache} if cache else {"PYJX_CACHE": "0"}
        inherited.pop("PYTHONPATH", None)
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # or sources are compiled at each import
        return {
            **inherited,
            **path,
            **caching,
            "BENCHMARK_LIBRARY": self.module,
            "BENCHMARK_STARTED": str(time.monotonic()),  # one clock for all processes
        }

    def run(self, process: Process, cache: str | None = None) -> Figures:
        command = [self.python, str(HERE / "worker.py"), process.case, json.dumps(process.options)]
        done = subprocess.run(
            command, env=self.environment(cache), capture_output=True, text=True, check=False
        )
        if done.returncode:
            failure = done.stderr.strip().splitlines()
            print(f"{self.library}: {process.group} failed: {failure[-1:]}", file=sys.stderr)
            return {}
        return json.loads(done.stdout.strip().splitlines()[-1])


def measure(process: Process, sides: tuple[Side, Side], rounds: int) -> list[dict[str, Figures]]:
    """One dict of figures by library for each round; which library goes first alternates."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        cache = folder if process.cached else None
        if process.cached:
            for side in sides:
                side.run(process, cache)
        for turn in range(min(rounds, process.at_most)):
            order = sides if turn % 2 else sides[::-1]
            results.append({side.library: side.run(process, cache) for side in order})
            print(".", end="", flush=True, file=sys.stderr)
    return results


def median_figures(results: list[dict[str, Figures]], library: str) -> Figures:
    runs = [result[library] for result in results if result[library]]
    names = runs[0] if runs else ()
    return {
        name: statistics.median(run[name] for run in runs)
        if isinstance(runs[0][name], int | float)
        else runs[0][name]
        for name in names
    }


def unit_of(group: str, name: str) -> tuple[float, str]:
    return UNITS.get(name) or UNITS.get(group) or (1e-3, "ms")


def row(key: Key, ours: float | None, theirs: float | None) -> Figures:
    group, name = key
    scale, unit = unit_of(group, name)
    return {
        "group": group,
        "name": name,
        "unit": unit,
        "pyjx": None if ours is None else ours / scale,
        "jax": None if theirs is None else theirs / scale,
        "ratio": ours / theirs if ours is not None and theirs else None,
        "bar": BARS.get(key),
    }


def rows_of(group: str, ours: Figures, theirs: Figures) -> Iterable[Figures]:
    names = [name for name in {**theirs, **ours} if name not in ("heavy_modules", "checksum")]
    for name in names:
        yield row((group, name), ours.get(name), theirs.get(name))


def bars_of_ratios(lines: list[Figures]) -> Iterable[Figures]:
    """The bars on the ratios of a group taken together."""
    ratios = [line["ratio"] for line in lines if line["group"] == "numpy60" and line["ratio"]]
    if ratios:
        for name, ratio in (("geometric mean", statistics.geometric_mean(ratios)),
                            ("worst", max(ratios))):
            yield {**row(("numpy60", name), None, None), "unit": "", "ratio": ratio}


def own_bars(pyjx: dict[str, Figures]) -> Iterable[Figures]:
    """The bars on pyjx alone: growth with the number of layers and of equations."""

    def ratio(name: str, big: Key, small: Key, bar: float) -> Iterable[Figures]:
        top, base = (pyjx.get(group, {}).get(figure) for group, figure in (big, small))
        if top and base:
            figures = {"pyjx": None, "jax": None, "unit": "", "ratio": top / base, "bar": bar}
            yield {"group": "pyjx alone", "name": name, **figures}

    at = ("transformer 24", "compile"), ("transformer 12", "compile")
    yield from ratio("compile at 24 / 12 layers", *at, bar=1.8)
    for size in ("10000", "100000"):
        at = ("linear", f"{size} equations"), ("linear", "1000 equations")
        yield from ratio(f"trace of an equation, {size} / 1000", *at, bar=1.2)


def warnings(figures: dict[str, dict[str, Figures]]) -> Iterable[str]:
    for group, values in figures["pyjx"].items():
        if heavy := values.get("heavy_modules"):
            yield f"{group}: pyjx imports {', '.join(heavy)}"
        other = figures["jax"].get(group, {}).get("checksum")
        if other is not None and "checksum" in values:
            difference = abs(values["checksum"] - other) / max(abs(other), 1e-6)
            if not difference < 1e-3:
                yield f"{group}: the results differ by {difference:.1e}"


def over(line: Figures) -> bool:
    return line["bar"] is not None and (line["ratio"] is None or line["ratio"] > line["bar"])


def table(lines: list[Figures]) -> str:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:,.{3 if value < 10 else 1}f}"

    def cells(line: Figures) -> tuple[str, ...]:
        return (
            line["group"],
            line["name"],
            number(line["pyjx"]),
            number(line["jax"]),
            line["unit"],
            "-" if line["ratio"] is None else f"{line['ratio']:.3f}",
            "" if line["bar"] is None else f"<= {line['bar']:g}",
            "over" if over(line) else "",
        )

    head = ("group", "what", "pyjx", "jax", "unit", "ratio", "bar", "")
    body = [cells(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    pad: list[Callable[..., str]] = [str.ljust, str.ljust, str.rjust, str.rjust, str.ljust]
    pad += [str.rjust, str.ljust, str.ljust]
    return "\n".join(
        "  ".join(p(cell, w) for p, cell, w in zip(pad, cells, widths, strict=True)).rstrip()
        for cells in (head, *body)
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jax-python", required=True, help="interpreter that has jax")
    parser.add_argument("--pyjx-python", required=True, help="interpreter that has pyjx's needs")
    parser.add_argument("--only", default=",".join(GROUPS), help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=3, help="processes a figure (default 3)")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument(
        "--library", default="pyjx", help="module measured as pyjx; 'jax' tries out the harness"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.only.split(",")) - set(GROUPS):
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; known: {', '.join(GROUPS)}")
    return chosen


def main() -> int:
    options = arguments()
    sides = (
        Side("pyjx", options.pyjx_python, options.library),
        Side("jax", options.jax_python, "jax"),
    )
    figures: dict[str, dict[str, Figures]] = {"pyjx": {}, "jax": {}}
    raw = []
    for group in options.only.split(","):
        for process in GROUPS[group]:
            results = measure(process, sides, options.rounds)
            raw.append({"group": process.group, "case": process.case, "rounds": results})
            for library, merged in figures.items():
                merged.setdefault(process.group, {}).update(median_figures(results, library))
    print(file=sys.stderr)
    lines = [
        line
        for group in figures["jax"]
        for line in rows_of(group, figures["pyjx"][group], figures["jax"][group])
    ]
    lines += bars_of_ratios(lines)
    lines += own_bars(figures["pyjx"])
    print(table(lines))
    for warning in warnings(figures):
        print(f"warning: {warning}")
    if options.json:
        options.json.write_text(json.dumps({"lines": lines, "raw": raw}, indent=1) + "\n")
    return int(any(over(line) for line in lines))


if __name__ == "__main__":
    sys.exit(main())
