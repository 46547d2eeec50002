# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.checkify.

from pyjx.experimental.checkify.transformation import checkify as checkify
from pyjx.experimental.checkify.conditions import check as check
from pyjx.experimental.checkify.conditions import check_error as check_error
from pyjx.experimental.checkify.conditions import debug_check as debug_check
from pyjx.experimental.checkify.errors import DivisionByZeroError as DivisionByZeroError
from pyjx.experimental.checkify.errors import Error as Error
from pyjx.experimental.checkify.errors import ErrorCategory as ErrorCategory
from pyjx.experimental.checkify.errors import FailedCheckError as FailedCheckError
from pyjx.experimental.checkify.errors import JaxException as JaxException
from pyjx.experimental.checkify.errors import JaxRuntimeError as JaxRuntimeError
from pyjx.experimental.checkify.errors import NaNError as NaNError
from pyjx.experimental.checkify.errors import OOBError as OOBError
from pyjx.experimental.checkify.errors import all_checks as all_checks
from pyjx.experimental.checkify.errors import automatic_checks as automatic_checks
from pyjx.experimental.checkify.errors import div_checks as div_checks
from pyjx.experimental.checkify.errors import float_checks as float_checks
from pyjx.experimental.checkify.errors import index_checks as index_checks
from pyjx.experimental.checkify.errors import init_error as init_error
from pyjx.experimental.checkify.errors import nan_checks as nan_checks
from pyjx.experimental.checkify.errors import user_checks as user_checks

__all__ = [
    "checkify",
    "check",
    "check_error",
    "debug_check",
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
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
