"""Draws what `run.py --json` wrote: `python benchmarks/plot.py FIGURES.json PICTURE.svg`."""

import argparse
import importlib
import json
import sys

HEIGHT = 0.24  # inches a bar


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws what `run.py --json` wrote.")
    parser.add_argument("figures", metavar="FIGURES.json")
    parser.add_argument("picture", metavar="PICTURE.svg")
    options = parser.parse_args()
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ModuleNotFoundError:
        sys.exit("plot.py draws with matplotlib: pip install matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "pyjx"  # the same figures give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    plt = importlib.import_module("matplotlib.pyplot")
    with open(options.figures, encoding="utf-8") as file:
        lines = [line for line in json.load(file)["lines"] if line.get("ratio")]
    names = [f"{line['group']}: {line['name']}" for line in lines]
    ratios = [line["ratio"] for line in lines]
    figure, axes = plt.subplots(figsize=(8, 1 + HEIGHT * len(lines)))
    colours = ["tab:blue" if ratio <= 1.05 else "tab:orange" for ratio in ratios]
    bars = axes.barh(names, [ratio - 1 for ratio in ratios], left=1, color=colours)
    axes.bar_label(bars, [f" {ratio:.2f} " for ratio in ratios], fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(ratios) / 1.6, max(2, 1.4 * max(ratios)))
    axes.set_xlabel("time of pyjx / time of jax (left of 1: pyjx is faster)")
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(options.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
