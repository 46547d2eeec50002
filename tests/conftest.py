"""Tests trace functions for many signatures on purpose, and on slow machines that takes long: the
warning that tells users so is off, but where it is tested."""

from pyjx import configuration

configuration.retraces_warn_count.update(-1)
