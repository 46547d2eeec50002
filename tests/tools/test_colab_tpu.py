"""What `setup_tpu` says: with a TPU, without one, and with one that cannot be used."""

import pytest

from pyjx import jaxlib_api
from pyjx.runtime import backends
from pyjx.tools import colab_tpu
from pyjx.version import PYJX_VERSION


def machine(monkeypatch, platform="cpu", hardware=False, reason=None):
    monkeypatch.setattr(backends, "default_backend", lambda: platform)
    monkeypatch.setattr(backends, "has_hardware", lambda name: hardware and name == "tpu")
    monkeypatch.setattr(backends, "report", lambda: {"tpu": reason} if reason else {})


def test_without_a_tpu_it_says_what_to_choose(monkeypatch, capsys):
    machine(monkeypatch)
    colab_tpu.setup_tpu()
    out = capsys.readouterr().out
    assert f"CPU: pyjx {PYJX_VERSION}, jaxlib {jaxlib_api.JAXLIB_RELEASE}" in out
    assert "There is no TPU here; what follows runs on the CPU. In Colab choose" in out


@pytest.mark.parametrize(("release", "said"), [
    (None, "TPU: pyjx"), ("release-colab_20260819", "Colab TPU: pyjx")])
def test_with_a_tpu_it_reports(monkeypatch, capsys, release, said):
    machine(monkeypatch, "tpu", True)
    if release:
        monkeypatch.setenv("COLAB_RELEASE_TAG", release)
    colab_tpu.setup_tpu("tpu_driver-0.2")
    out = capsys.readouterr().out
    assert out.startswith(said) and " device" in out.splitlines()[1] and "no TPU" not in out


@pytest.mark.parametrize(("reason", "cure"), [
    ("its plugin (libtpu/libtpu.so) is not installed", r"pip install 'libtpu==0\.0\.23\.\*'"),
    ("it failed to start: Mismatched PJRT plugin PJRT API version (0.47) and framework PJRT API "
     "version 0.54", r"jaxlib 0\.7\.2 and libtpu .* do not belong together: pip install"),
    ("it failed to start: The TPU is already in use by process with pid 7", "end that one"),
    (None, "JAX_PLATFORMS=cpu"),
])
def test_a_tpu_that_cannot_be_used_is_an_error(monkeypatch, reason, cure):
    machine(monkeypatch, "cpu", True, reason)
    monkeypatch.setattr(jaxlib_api, "JAXLIB_RELEASE", "0.7.2")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    with pytest.raises(RuntimeError, match=cure):
        colab_tpu.setup_tpu()
