"""Lanes that carry a derivative: a value and its change along one direction, per lane.

The kernels' texts run on them as on any number, and what comes out is the exact derivative of what
was computed (forward mode; Griewank and Walther, Evaluating Derivatives, SIAM 2008, chapter 3).
Every lane has a direction of its own, so a Jacobian takes one run for as many columns as there are
lanes.
"""

import operator

from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

from softcr_models.rod import simd
from softcr_models.rod.simd import (
    FLAGS,
    Vec,
    any_positive,
    exponential,
    nan_unless_positive,
    positive_part,
    square_root,
)


class Dual(types.Type):
    """Lanes `vec` of values and lanes of their changes."""

    def __init__(self, vec: Vec) -> None:
        self.vec = vec
        super().__init__(name=f"Dual({vec})")

    def can_convert_from(self, typing_context, other):
        """Numbers are constants."""
        return Conversion.safe if isinstance(other, types.Number) else None

    def unify(self, typing_context, other):
        """As of `Vec`."""
        return self if isinstance(other, types.Number) else None


@register_model(Dual)
class _DualModel(models.StructModel):
    def __init__(self, manager, dual):
        super().__init__(manager, dual, [("value", dual.vec), ("tangent", dual.vec)])


class _BinaryTemplate(AbstractTemplate):
    def generic(self, args, kws):
        duals = [arg for arg in args if isinstance(arg, Dual)]
        if len(args) == 2 and duals and all(isinstance(a, (Dual, types.Number)) for a in args):
            return signature(duals[0], duals[0], duals[0])
        return None


class _UnaryTemplate(AbstractTemplate):
    def generic(self, args, kws):
        return signature(args[0], args[0]) if len(args) == 1 and isinstance(args[0], Dual) else None


class _Arithmetic:
    """Instructions on lanes with the kernels' flags."""

    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        instruction = getattr(self.builder, name)
        return lambda *args: instruction(*args, flags=FLAGS[name])


def _sum(on, a, b):
    return on.fadd(a.value, b.value), on.fadd(a.tangent, b.tangent)


def _difference(on, a, b):
    return on.fsub(a.value, b.value), on.fsub(a.tangent, b.tangent)


def _product(on, a, b):
    change = on.fadd(on.fmul(a.tangent, b.value), on.fmul(a.value, b.tangent))
    return on.fmul(a.value, b.value), change


def _quotient(on, a, b):
    value = on.fdiv(a.value, b.value)
    return value, on.fdiv(on.fsub(a.tangent, on.fmul(value, b.tangent)), b.value)


def _pair(context, builder, dual, value, tangent):
    pair = cgutils.create_struct_proxy(dual)(context, builder)
    pair.value, pair.tangent = value, tangent
    return pair._getvalue()


def _register(rule, *operators):
    def lower(context, builder, sig, args):
        proxy = cgutils.create_struct_proxy(sig.return_type)
        a, b = (proxy(context, builder, value=each) for each in args)
        return _pair(context, builder, sig.return_type, *rule(_Arithmetic(builder), a, b))

    for operation in operators:
        template = type(f"Dual_{operation.__name__}", (_BinaryTemplate,), {"key": operation})
        infer_global(operation)(template)
        lower_builtin(operation, Dual, Dual)(lower)


_register(_sum, operator.add, operator.iadd)
_register(_difference, operator.sub, operator.isub)
_register(_product, operator.mul, operator.imul)
_register(_quotient, operator.truediv, operator.itruediv)
infer_global(operator.neg)(type("Dual_neg", (_UnaryTemplate,), {"key": operator.neg}))


@lower_builtin(operator.neg, Dual)
def _negate(context, builder, sig, args):
    on, dual = _Arithmetic(builder), sig.return_type
    a = cgutils.create_struct_proxy(dual)(context, builder, value=args[0])
    return _pair(context, builder, dual, on.fneg(a.value), on.fneg(a.tangent))


@lower_cast(types.Number, Dual)
def _constant(context, builder, from_type, to_type, value):
    lanes = context.cast(builder, value, from_type, to_type.vec)
    zero = context.get_constant_null(to_type.vec)
    return _pair(context, builder, to_type, lanes, zero)


@intrinsic
def with_tangent(typing_context, value, tangent):
    """A dual number of lanes of values and lanes of changes."""
    dual = Dual(value)

    def generate(context, builder, sig, args):
        return _pair(context, builder, dual, *args)

    return dual(value, tangent), generate


def _part(name):
    @intrinsic
    def part(typing_context, dual):
        def generate(context, builder, sig, args):
            pair = cgutils.create_struct_proxy(dual)(context, builder, value=args[0])
            return getattr(pair, name)

        return dual.vec(dual), generate

    return part


value_of = _part("value")
tangent_of = _part("tangent")


@overload(square_root, inline="always")
def _root(x):
    def implementation(x):
        root = square_root(value_of(x))
        return with_tangent(root, 0.5 * tangent_of(x) / root)

    return implementation if isinstance(x, Dual) else None


@overload(exponential, inline="always")
def _exponential(x):
    def implementation(x):
        value = exponential(value_of(x))
        return with_tangent(value, value * tangent_of(x))

    return implementation if isinstance(x, Dual) else None


@overload(positive_part, jit_options={"forceinline": True})
def _positive_part(x):
    def implementation(x):
        value = value_of(x)
        return with_tangent(positive_part(value), simd.where_positive(value, tangent_of(x)))

    return implementation if isinstance(x, Dual) else None


@overload(nan_unless_positive, jit_options={"forceinline": True})
def _nan_unless_positive(x, condition):
    def implementation(x, condition):
        kept = nan_unless_positive(value_of(x), value_of(condition))
        return with_tangent(kept, tangent_of(x))

    return implementation if isinstance(x, Dual) else None


@overload(any_positive, jit_options={"forceinline": True})
def _any_positive(x):
    def implementation(x):
        return any_positive(value_of(x))

    return implementation if isinstance(x, Dual) else None
