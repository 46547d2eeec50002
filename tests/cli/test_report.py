"""`python -m pyjx report`: where the time of a process went."""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

import pyjx as jax
from pyjx.__main__ import main
from pyjx.cli import report
from pyjx.runtime import ledger
from pyjx.runtime.explain import cure_for
from tests.cli.test_doctor import ROOT, run

PROGRAM = textwrap.dedent("""
    import sys
    import jax, jax.numpy as jnp

    @jax.jit
    def step(w, x):
        return w - jnp.tanh(x @ w).sum() * jax.grad(lambda w: jnp.sum(jnp.sin(x @ w)))(w)

    def train():
        later = jax.jit(lambda x: x * 2)  # gone when the program ends
        w = later(jnp.ones((40, 30)))
        for n in (5, 6):
            w = step(w, jnp.ones((n, 40)))
        return w

    print("sum", train().sum())
    sys.exit(len(sys.argv) + 1)
""")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def test_what_a_program_did(program, tmp_path):
    page = tmp_path / "page.json"
    found = run("report", "-o", str(page), str(program), "argument", JAX_PLATFORMS="cpu")
    assert found.returncode == 3, found.stderr  # the program's own
    assert found.stdout.startswith("sum")
    told = json.loads(page.read_text())
    assert {row["stage"] for row in told["Time"]} >= {"trace", "compile", "first runs", "all else"}
    steps = {row["function"]: row for row in told["Functions"]}
    assert (steps["step"]["traces"], steps["step"]["defined at"]) == (2, f"{program}:5")
    assert steps["step"]["first runs"] > 0 and "<lambda>" in steps
    (advice,) = [row for row in told["What would shorten it"] if row["function"] == "step"]
    assert "x: f32[5,40] -> f32[6,40]: pad the argument" in advice["why, and what to do"]
    compilations = [row for row in told["Compilations"] if row["function"] == "step"]
    assert [row["trace"] for row in compilations] == [1, 2]
    for stage in ("tracing", "lowering", "compile"):
        assert all(row[stage] > 0 for row in compilations), stage
    assert told["Lines"][0]["line"] == f"{program}:7"
    assert told["Lines"][0]["source"].startswith("return w - jnp.tanh(x @ w).sum()")
    assert told["Largest arrays"][0]["size"] == 4800
    assert all(0 <= row["share"] <= 1 for row in told["Time"])
    assert f"{program}:10" in {row["line"] for row in told["Lines"]}


def test_each_large_result_has_a_row_with_its_own_type(tmp_path):
    path = tmp_path / "loops.py"
    path.write_text("import jax, jax.numpy as jnp\n"
                    "@jax.jit\n"
                    "def f(ws, x, key):\n"
                    "    def body(c, w): return jnp.tanh(c @ w), (c.sum(), c[0], c * 2, key)\n"
                    "    return jax.lax.scan(body, x, ws), jnp.linalg.qr(x)\n"
                    "f(jnp.ones((6, 64, 64)), jnp.ones((32, 64)), jax.random.key(0))\n")
    page = tmp_path / "page.json"
    run("report", "-o", str(page), str(path), JAX_PLATFORMS="cpu")
    rows = json.loads(page.read_text())["Largest arrays"]
    assert [(row["array"], row["size"]) for row in rows if row["operation"] == "scan"] == [
        ("f32[6,32,64]", 49152), ("f32[6,64]", 1536), ("key<fry>[6]", 48), ("f32[6]", 24)]
    assert [row["array"] for row in rows if row["operation"] == "qr"] == [
        "f32[32,64]", "f32[32,32]"]


def test_advice_names_each_cause(tmp_path):
    path = tmp_path / "causes.py"
    path.write_text("import jax, jax.numpy as jnp\n"
                    "f = jax.jit(lambda x, k: x * k)\n"
                    "for n in (2, 3, 4):\n"
                    "    f(jnp.ones(n), 1)\n"
                    "f(jnp.ones(n), 1.5)\n")
    page = tmp_path / "page.json"
    run("report", "-o", str(page), str(path), JAX_PLATFORMS="cpu")
    told = {row["why, and what to do"]: row["time"]
            for row in json.loads(page.read_text())["What would shorten it"]}
    (shapes,) = [why for why in told if "traced again 2 times, x: f32[3] -> f32[4]: pad " in why]
    (dtypes,) = [why for why in told if why.startswith("traced again, k: ")]
    assert told[shapes] > 0 and told[dtypes] > 0


def test_first_runs_are_one_of_each_program_and_operations_have_a_line(tmp_path):
    path = tmp_path / "calls.py"
    path.write_text("import time, jax, jax.numpy as jnp\n"
                    "@jax.jit\n"
                    "def f(x):\n"
                    "    jax.debug.callback(lambda: time.sleep(0.5))\n"
                    "    return x\n"
                    "x = [jnp.linalg.svd(jnp.ones((7, n)))[1] for n in range(2, 12)][-1]\n"
                    "for _ in range(6):\n"
                    "    f(x).block_until_ready(); jax.effects_barrier()\n")
    page = tmp_path / "page.json"
    run("report", "-o", str(page), str(path), JAX_PLATFORMS="cpu",
        PYJX_CACHE_DIR=str(tmp_path / "cache"))
    told = json.loads(page.read_text())
    (row,) = told["Functions"]
    assert row["first runs"] < 2.5
    assert [row for row in told["What would shorten it"] if re.match(
        "jit the function that calls .*svd.*, such as the one at .*calls.py:6$",
        row["why, and what to do"])], told["What would shorten it"]


def test_what_is_compiled_again_has_its_cause_and_cure(tmp_path):
    path = tmp_path / "again.py"
    path.write_text("import jax, jax.numpy as jnp, numpy as np\n"
                    "jax.config.update('jax_num_cpu_devices', 2)\n"
                    "mesh, P = jax.sharding.Mesh(np.array(jax.devices()), ('d',)), jax.P\n"
                    "rows, columns = [jax.NamedSharding(mesh, p) for p in (P('d'), P(None, 'd'))]\n"
                    "x = jnp.ones((4, 4))\n"
                    "f, g, h = [jax.jit(lambda x, n=n: x * n) for n in (2, 3, 4)]\n"
                    "f(x), f(jax.device_put(x, rows)), f(jax.device_put(x, columns))\n"
                    "for device in jax.devices():\n"
                    "    g(jax.device_put(x, device))\n"
                    "explicit = jax.make_mesh((2,), ('d',))\n"
                    "for p in (P('d'), P(None, 'd')):\n"
                    "    h(jax.device_put(x, jax.NamedSharding(explicit, p)))\n"
                    "k = jax.jit(lambda x: -x)\n"
                    "k(jnp.ones(7)), k(jnp.ones(8, 'bfloat16')), k(jnp.ones(8))\n")
    page = tmp_path / "page.json"
    found = run("report", "-o", str(page), str(path), JAX_PLATFORMS="cpu")
    assert found.returncode == 0, found.stderr
    told = [row["why, and what to do"]
            for row in json.loads(page.read_text())["What would shorten it"]]
    for words in ("compiled again, shardings of one device -> (P('d',)) over d=2: give the arg",
                  "shardings (P('d',)) over d=2 -> (P(None, 'd')) over d=2: give the arguments",
                  "compiled again, device cpu:0 -> cpu:1: put the arguments on one device",
                  "traced again, x: f32[4@d,4] -> f32[4,4@d]: give the argument one sharding",
                  "x: f32[7] -> bf16[8]: convert the argument to one dtype, and pad it",
                  "x: bf16[8] -> f32[8]: convert the argument to one dtype before"):
        assert [why for why in told if words in why], (words, told)


def test_links_of_functions_of_one_name_lead_to_each(tmp_path):
    page = tmp_path / "page.html"
    run("report", "-o", str(page), "-c", "import jax\nfor x in (1, 1., 2j):\n"
        " jax.jit(lambda x: x)(x)\n jax.jit(lambda x: -x)(x)\n", JAX_PLATFORMS="cpu")
    text = page.read_text()
    links = set(re.findall(r"href='#(of-&lt;lambda[^'>]+)", text))
    assert len(links) == 2 and links == set(re.findall(r"tr id='(of-[^'>]+)", text))


def test_forms_of_the_report(program, tmp_path):
    text = run("report", str(program), JAX_PLATFORMS="cpu").stderr
    assert "\nWhat would shorten it: the dearest first.\n" in text
    page = tmp_path / "page.html"
    run("report", "-o", str(page), "-c", "import jax; jax.jit(lambda x: x)(1)", JAX_PLATFORMS="cpu")
    text = page.read_text()
    assert ">Compilations</h2>" in text
    assert "<a href='#of-&lt;lambda&gt;-at-" in text and "<tr id='of-&lt;lambda&gt;-at-" in text
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?!#|'#)", text)  # one file
    links = set(re.findall(r"href='?#([^'>]+)", text))
    assert links <= set(re.findall(r"id='?([^'>]+)", text))


def test_lines_are_the_users_and_arguments_are_few(tmp_path):
    """Of many leaves the first are told; what an installed package does is of who calls it."""
    package = tmp_path / "site-packages" / "layers.py"
    package.parent.mkdir()
    package.write_text("def dense(w, x):\n    return x @ w\n")
    path = tmp_path / "many.py"
    path.write_text("import jax, jax.numpy as jnp, sys\n"
                    f"sys.path.insert(0, {str(package.parent)!r})\n"
                    "from layers import dense\n"
                    "f = jax.jit(lambda ws, x: sum(dense(w, x) for w in ws))\n"
                    "f([jnp.ones((3, 3))] * 30, jnp.ones((2, 3)))\n")
    page = tmp_path / "page.json"
    found = run("report", "-o", str(page), str(path), JAX_PLATFORMS="cpu")
    assert found.returncode == 0, found.stderr
    told = json.loads(page.read_text())
    assert told["Lines"][0]["line"] == f"{path}:4"
    (row,) = [row for row in told["Compilations"] if row["function"] == "<lambda>"]
    assert row["why, or for what"].endswith(", and 23 more")


def test_a_program_that_fails_is_reported_too(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text("import jax\njax.jit(lambda x: x)(1)\nraise KeyError('mine')\n")
    found = run("report", str(path), JAX_PLATFORMS="cpu")
    assert found.returncode == 1 and "KeyError: 'mine'" in found.stderr
    assert "\nFunctions: " in found.stderr


@pytest.mark.parametrize(("options", "given", "cure"), [
    ({}, 0.2, "give rate in each call, or in none"),
    ({"static_argnames": "rate"}, 0.1, "give rate in each call, or in none"),
    ({"static_argnames": "rate"}, 0.2, "pass the value as an array, if it is a number and neither "
     "shapes nor Python control flow depend on it")])
def test_an_argument_with_a_default_is_given_always_or_never(options, given, cure):
    ledger.clear()
    f = jax.jit(lambda x, rate=0.1: x["a"] * rate, **options)
    f({"a": 1.0})
    f({"a": 1.0}, rate=given)
    f({"a": 1.0, "b": 1.0}, rate=given)
    f({"a": 1.0})
    found = [cure_for(f.explain().traces[i].changes[0]) for i in (1, 2)]
    assert found == [cure, "pass the same structure in each call"]


def test_what_is_left_out_is_compared_with_its_default():
    many, k = tuple(range(1000)), 7

    def closed(x, **options):
        return x * k if options else x

    f = jax.jit(lambda x, t=many: x, static_argnames="t")
    closed = jax.jit(closed, static_argnames="k")
    for call, given in ((f, {}), (f, {"t": (*many[:-1], 5)}), (closed, {}), (closed, {"k": 7})):
        call(1.0, **given)
    change = f.explain().traces[1].changes[0]
    assert change.before.endswith(" by default") and "does not equal it" in change.after
    assert (closed.explain().traces[1].changes[0].before) == "not given"


def test_where_nothing_was_compiled_there_are_no_empty_tables(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text("import jax\n1 / 0\n")
    found = run("report", str(path), JAX_PLATFORMS="cpu")
    assert "\nTime: " in found.stderr
    assert "Functions:" not in found.stderr and "nothing was found" not in found.stderr


def test_a_table_without_rows_is_left_out_of_the_page():
    empty = report.Section("What would shorten it", "nothing was found.", ("function",), ())
    assert empty.html(frozenset()).endswith("<p>nothing was found.</p>")


@pytest.mark.parametrize(("given", "meant"), [
    (["doctor", "--jsn"], "unrecognized arguments: --jsn. Did you mean --json?"),
    (["why", "--inff", "x.py"], "unrecognized arguments: --inff. Did you mean --inf?"),
    (["report", "--out", "x.py"], "unrecognized arguments: --out; there are: -h, --help, -o."),
])
def test_options_that_are_not_there_are_told_what_is_meant(given, meant, capsys):
    with pytest.raises(SystemExit):
        main(given)
    assert meant in capsys.readouterr().err


def test_where_a_report_is_named_behind_the_program(program, tmp_path):
    done = subprocess.run([sys.executable, "-m", "pyjx", "report", str(program), "-o", "x.html"],
                          check=False, capture_output=True, text=True, cwd=tmp_path)
    assert "-o stands behind the program, and is the program's own; the" in done.stderr
    assert not (tmp_path / "x.html").exists()


def test_reports_want_a_program(capsys):
    with pytest.raises(SystemExit):
        main(["report"])
    assert "name the program that is to run" in capsys.readouterr().err
    assert subprocess.run([sys.executable, "-m", "pyjx", "report", "--help"], check=False,
                          capture_output=True).returncode == 0


def test_what_a_program_does_to_its_process_is_its_own_affair(tmp_path):
    (tmp_path / "moves.py").write_text(
        "import jax, os, sys\njax.jit(lambda x: x)(1)\nos.chdir('/')\n"
        "if not os.fork():\n    sys.exit(4)\nos.wait()\nsys.stdout.close()\nsys.exit(5)\n")
    command = [sys.executable, "-m", "pyjx", "report", "-o", "here.txt", "moves.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False,
                           env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"})
    assert found.returncode == 5 and "Traceback" not in found.stderr
    assert (tmp_path / "here.txt").read_text().count("Time: ") == 1
    found = run("report", "-o", str(tmp_path), "-c", "1")
    assert found.returncode == 2 and "that is a folder; name a file" in found.stderr
    found = run("report", "-o", "no_such/x.html", "-c", "1")
    assert found.returncode == 2 and "no_such/x.html: there is no folder no_such" in found.stderr
    assert "no file nothing.py" in run("report", "nothing.py").stderr
