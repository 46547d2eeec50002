"""One program for arrays of many sizes: functions traced with symbolic sizes, and run padded."""

from pyjx.dynamic.automatic import automatic_call as automatic_call
from pyjx.dynamic.buckets import dynamic_spec as dynamic_spec
