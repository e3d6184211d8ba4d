"""Arrays that compiled code uses without counting who holds them.

Numba counts the holders of every array that leaves a tuple, atomically, at every place: in the
equations of a rod with fittings, whose inner loops take a dozen arrays out of tuples, more than
half of the time of a step went into it.
"""

from typing import Any, TypeVar

from numba.core import types
from numba.core.imputils import impl_ret_borrowed
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import MemInfoPointer
from numba.extending import intrinsic, overload

_Any = TypeVar("_Any")


def borrowed(value: _Any) -> _Any:
    """An array, or a tuple of arrays, of tuples and of other things, as one that nobody holds.

    In compiled code its arrays have no owner: who borrows must not outlive what it borrows from.
    An argument of the function that borrows it is safe.
    """
    return value


@overload(borrowed, inline="always")
def _overload_borrowed(value):
    def implementation(value):
        return _without_owner(value)

    return implementation


@intrinsic
def _without_owner(typing_context, value):
    def generate(context, builder, sig, args):
        return impl_ret_borrowed(
            context, builder, sig.return_type, _released(context, builder, sig.args[0], args[0])
        )

    return value(value), generate


def _released(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    """The LLVM value of a type with the owners of its arrays taken out."""
    if isinstance(kind, types.Array):
        array = context.make_helper(builder, kind, value)
        array.meminfo = context.get_constant_null(MemInfoPointer(types.voidptr))
        array.parent = context.get_constant_null(types.pyobject)
        return array._getvalue()
    if isinstance(kind, BaseTuple):
        for place, member in enumerate(kind):
            inner = builder.extract_value(value, place)
            value = builder.insert_value(value, _released(context, builder, member, inner), place)
    return value
