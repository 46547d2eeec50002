# Written by `python -m pyjx.cli.stubs` from the table of pyjx.dtypes.

from pyjx.core.dtypes import TypePromotionError as TypePromotionError
from pyjx.core.dtypes import bfloat16 as bfloat16
from pyjx.core.dtypes import canonicalize_dtype as canonicalize_dtype
from pyjx.core.dtypes import extended as extended
from pyjx.core.dtypes import finfo as finfo
from pyjx.core.dtypes import float0 as float0
from pyjx.core.dtypes import iinfo as iinfo
from pyjx.core.dtypes import issubdtype as issubdtype
from pyjx.core.dtypes import itemsize_bits as itemsize_bits
from pyjx.core.dtypes import prng_key as prng_key
from pyjx.core.dtypes import result_type as result_type
from pyjx.core.dtypes import scalar_type_of as scalar_type_of

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
