# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.checkify.

from pyjx.experimental.checkify.transformation import checkify as checkify
from pyjx.experimental.checkify.checks import DivisionByZeroError as DivisionByZeroError
from pyjx.experimental.checkify.checks import Error as Error
from pyjx.experimental.checkify.checks import ErrorCategory as ErrorCategory
from pyjx.experimental.checkify.checks import FailedCheckError as FailedCheckError
from pyjx.experimental.checkify.checks import JaxException as JaxException
from pyjx.experimental.checkify.checks import JaxRuntimeError as JaxRuntimeError
from pyjx.experimental.checkify.checks import NaNError as NaNError
from pyjx.experimental.checkify.checks import OOBError as OOBError
from pyjx.experimental.checkify.checks import all_checks as all_checks
from pyjx.experimental.checkify.checks import automatic_checks as automatic_checks
from pyjx.experimental.checkify.checks import check as check
from pyjx.experimental.checkify.checks import check_error as check_error
from pyjx.experimental.checkify.checks import debug_check as debug_check
from pyjx.experimental.checkify.checks import div_checks as div_checks
from pyjx.experimental.checkify.checks import float_checks as float_checks
from pyjx.experimental.checkify.checks import index_checks as index_checks
from pyjx.experimental.checkify.checks import init_error as init_error
from pyjx.experimental.checkify.checks import nan_checks as nan_checks
from pyjx.experimental.checkify.checks import user_checks as user_checks

__all__ = [
    "checkify",
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxException",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
