"""The table of lowering rules."""

import re

import pytest

from lowering import rules
from pyjx.engine.decompose import decompose
from tests.sources import ROOT


def test_every_module_with_rules_is_loaded():
    loaded = {*rules._FAMILIES, *rules._OF_PLATFORM.values()}
    folder = ROOT / "lowering"
    assert loaded == {
        ".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")
        if re.search(r"from lowering.rules import .*\brule\b|\brules\.rule\b",
                     path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm"])
def test_modules_of_platforms_have_rules_for_these(platform):
    module = f"lowering.{rules._OF_PLATFORM[platform]}"
    assert rules.rules_for(platform)["eigh"].emit.__module__ == module
    assert rules.rules_for(platform)["eigh"].foreign
    assert not rules.rules_for(platform)["add"].foreign


def test_a_rule_for_a_platform_goes_before_that_for_all(monkeypatch):
    for platform in rules.PLATFORMS:
        assert rules.rules_for(platform)["an operation"] is None  # for which all are loaded
    for name in ("_RULES", "_by_platform"):
        monkeypatch.setattr(rules, name, {p: {} for p in (None, "cpu")} if name == "_RULES" else {})
    assert rules.rules_for("cpu")["an operation"] is None
    rules.rule("an operation")(decompose)
    assert rules.rules_for("cpu")["an operation"].emit is decompose
    rules.rule("an operation", platform="cpu")(len)
    assert rules.rules_for("cpu")["an operation"].emit is len
    assert rules.rules_for("tpu")["an operation"].emit is decompose
    with pytest.raises(ValueError, match="two lowering rules"):
        rules.rule("an operation")(len)
