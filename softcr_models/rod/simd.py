"""A SIMD value type for numba, so that one kernel text advances many rods at once.

`Vec` is an LLVM vector of floats, one lane per candidate (of one lane: a float). Numba's loop
vectoriser fails on kernels of this size (2.4 to 13 times slower), so lanes are explicit. Only what
the kernels need exists: + - * / and negation, numbers broadcast to all lanes, and two ways to get
arrays of lanes: `as_lanes` (a view) and `local` (scratch on the stack).

Without numba's low-level interface (an incompatible version) `AVAILABLE` is False and everything
runs on scalars.
"""

import operator
import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.types.containers import BaseTuple
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model
from numba.np.arrayobj import make_array, populate_array

from softcr_models.rod.float_flags import SAFE_FLAGS

# Beside those, the two that the kernels' texts need, each where it cannot turn a NaN that came in
# into a number that goes out:
# - products may take 0 x for 0. The texts write the zeros of sparse 6x6 blocks out, and without it
#   every one of them is multiplied. What a zero drops here reaches the result by another way.
# - sums and quotients may take numbers for finite: (1 - t) x is then x - t x in one fused
#   instruction, and a float32 quotient a reciprocal estimate with one Newton step. NaN stays NaN in
#   both, and infinity may become NaN.
FLAGS = {
    "fadd": (*SAFE_FLAGS, "ninf"),
    "fsub": (*SAFE_FLAGS, "ninf"),
    "fmul": (*SAFE_FLAGS, "nnan"),
    "fdiv": (*SAFE_FLAGS, "ninf"),
    "fneg": SAFE_FLAGS,
}


class Vec(types.Type):
    """`lanes` floats of type `dtype` that travel together."""

    def __init__(self, dtype: types.Float, lanes: int) -> None:
        self.dtype = dtype
        self.lanes = lanes
        super().__init__(name=f"Vec({dtype}, {lanes})")

    def can_convert_from(self, typing_context, other):
        """Numbers broadcast."""
        return Conversion.safe if isinstance(other, types.Number) else None

    def unify(self, typing_context, other):
        """`v = 0.0; v += lanes` makes v lanes from the start."""
        return self if isinstance(other, types.Number) else None


@register_model(Vec)
class _VecModel(models.PrimitiveModel):
    def __init__(self, manager, vec):
        element = ir.FloatType() if vec.dtype == types.float32 else ir.DoubleType()
        several = ir.VectorType(element, vec.lanes)
        super().__init__(manager, vec, several if vec.lanes > 1 else element)


class _BinaryTemplate(AbstractTemplate):
    def generic(self, args, kws):
        lanes = [arg for arg in args if isinstance(arg, Vec)]
        if len(args) == 2 and lanes and all(isinstance(a, (Vec, types.Number)) for a in args):
            return signature(lanes[0], lanes[0], lanes[0])
        return None


class _UnaryTemplate(AbstractTemplate):
    def generic(self, args, kws):
        return signature(args[0], args[0]) if len(args) == 1 and isinstance(args[0], Vec) else None


def _register_binary(instruction, *operators):
    def lower(context, builder, sig, args):
        return getattr(builder, instruction)(*args, flags=FLAGS[instruction])

    for operation in operators:
        template = type(f"Vec_{operation.__name__}", (_BinaryTemplate,), {"key": operation})
        infer_global(operation)(template)
        lower_builtin(operation, Vec, Vec)(lower)


_register_binary("fadd", operator.add, operator.iadd)
_register_binary("fsub", operator.sub, operator.isub)
_register_binary("fmul", operator.mul, operator.imul)
_register_binary("fdiv", operator.truediv, operator.itruediv)
infer_global(operator.neg)(type("Vec_neg", (_UnaryTemplate,), {"key": operator.neg}))


@lower_builtin(operator.neg, Vec)
def _negate(context, builder, sig, args):
    return builder.fneg(args[0], flags=FLAGS["fneg"])


@lower_cast(types.Number, Vec)
def _broadcast(context, builder, from_type, to_type, value):
    scalar = context.cast(builder, value, from_type, to_type.dtype)
    if to_type.lanes == 1:
        return scalar
    vector_type = context.get_value_type(to_type)
    first = builder.insert_element(
        ir.Constant(vector_type, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
    )
    mask = ir.Constant(ir.VectorType(ir.IntType(32), to_type.lanes), [0] * to_type.lanes)
    return builder.shuffle_vector(first, ir.Constant(vector_type, ir.Undefined), mask)


def local(like: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Uninitialised scratch of `shape` whose elements are of the kind of `like` (number or lanes).

    In compiled code it lives on the stack of the caller, so it must not be returned. In plain
    Python `like` may be an array of lanes: the scratch gets the same trailing axes.
    """
    return np.empty(shape + np.shape(like), np.result_type(like))


@infer_global(local)
class _LocalTemplate(AbstractTemplate):
    """An overload that numba inlines would do as well, and compile a tenth longer."""

    prefer_literal = True

    def generic(self, args, kws):
        if len(args) != 2 or not isinstance(args[1], BaseTuple):
            return None
        if not all(isinstance(extent, types.IntegerLiteral) for extent in args[1]):
            return None
        array_type = types.Array(types.unliteral(args[0]), len(args[1]), "C", aligned=False)
        return signature(array_type, *args)


@lower_builtin(local, types.Any, BaseTuple)
def _stack_array(context, builder, sig, args):
    array_type = sig.return_type
    extents = tuple(extent.literal_value for extent in sig.args[1])
    element = context.get_data_type(array_type.dtype)
    size = context.get_abi_sizeof(element)
    count = int(np.prod(extents))
    memory = cgutils.alloca_once(builder, element, size=context.get_constant(types.intp, count))
    memory.align = 64
    array = make_array(array_type)(context, builder)
    strides = [size * int(np.prod(extents[axis + 1 :])) for axis in range(len(extents))]
    populate_array(
        array,
        data=memory,
        shape=[context.get_constant(types.intp, extent) for extent in extents],
        strides=[context.get_constant(types.intp, stride) for stride in strides],
        itemsize=context.get_constant(types.intp, size),
        meminfo=None,
    )
    return array._getvalue()


@intrinsic(prefer_literal=True)
def as_lanes(typing_context, array, lanes):
    """View of a C-contiguous float array (..., lanes) as an array (...) of lanes."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    count = lanes.literal_value
    dtype = Vec(array.dtype, count)
    view_type = types.Array(dtype, array.ndim - 1, "C", aligned=False)

    def generate(context, builder, sig, args):
        source = make_array(array)(context, builder, args[0])
        view = make_array(view_type)(context, builder)
        shape = cgutils.unpack_tuple(builder, source.shape)[:-1]
        strides = cgutils.unpack_tuple(builder, source.strides)[:-1]
        element = context.get_data_type(dtype)
        populate_array(
            view,
            data=builder.bitcast(source.data, element.as_pointer()),
            shape=shape,
            strides=strides,
            itemsize=context.get_constant(types.intp, context.get_abi_sizeof(element)),
            meminfo=source.meminfo,
            parent=source.parent,
        )
        if context.enable_nrt:
            context.nrt.incref(builder, view_type, view._getvalue())
        return view._getvalue()

    return view_type(array, lanes), generate


def square_root(x: Any) -> Any:
    """Of a number, an array or lanes."""
    return np.sqrt(x)


def exponential(x: Any) -> Any:
    """Of a number, an array or lanes."""
    return np.exp(x)


def positive_part(x: Any) -> Any:
    """x where it is above zero, else zero; of a number, an array or lanes."""
    return np.where(np.real(x) > 0.0, x, 0.0 * x)[()]


def nan_unless_positive(x: Any, condition: Any) -> Any:
    """x where the condition is above zero, else NaN; of numbers, arrays or lanes."""
    return np.where(np.real(condition) > 0.0, x, np.nan)[()]


def any_positive(x: Any) -> Any:
    """Whether a number, or any of its lanes, is above zero."""
    return np.any(np.real(x) > 0.0)


@intrinsic
def _vector_root(typing_context, x):
    def generate(context, builder, sig, args):
        kind = "f32" if x.dtype == types.float32 else "f64"
        name = f"llvm.sqrt.v{x.lanes}{kind}" if x.lanes > 1 else f"llvm.sqrt.{kind}"
        function_type = ir.FunctionType(args[0].type, [args[0].type])
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        return builder.call(function, args)

    return x(x), generate


@intrinsic
def _vector_exponential(typing_context, x):
    """Lane by lane: what the compiler has for numbers."""

    def generate(context, builder, sig, args):
        element = args[0].type if x.lanes == 1 else args[0].type.element
        function = builder.module.declare_intrinsic("llvm.exp", [element])
        if x.lanes == 1:
            return builder.call(function, args)
        result = args[0]
        for lane in range(x.lanes):
            place = ir.Constant(ir.IntType(32), lane)
            value = builder.call(function, [builder.extract_element(args[0], place)])
            result = builder.insert_element(result, value, place)
        return result

    return x(x), generate


@intrinsic
def where_positive(typing_context, condition, x):
    """x in lanes whose condition is above zero, zero in the others."""

    def generate(context, builder, sig, args):
        zero = ir.Constant(args[1].type, None)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], zero)

    return x(condition, x), generate


@intrinsic
def _lanes_or_nan(typing_context, x, condition):
    def generate(context, builder, sig, args):
        kind = args[0].type
        nan = ir.Constant(kind, float("nan") if x.lanes == 1 else [float("nan")] * x.lanes)
        above = builder.fcmp_ordered(">", args[1], ir.Constant(kind, None))
        return builder.select(above, args[0], nan)

    return x(x, condition), generate


@intrinsic
def _any_lane_positive(typing_context, x):
    def generate(context, builder, sig, args):
        above = builder.fcmp_ordered(">", args[0], ir.Constant(args[0].type, None))
        if x.lanes == 1:
            return above
        bits = builder.bitcast(above, ir.IntType(x.lanes))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(x), generate


def _is_number(x):
    return isinstance(x, types.Number)


@overload(square_root, inline="always")
def _root(x):
    def of_numbers(x):
        return np.sqrt(x)

    def of_lanes(x):
        return _vector_root(x)

    return of_lanes if isinstance(x, Vec) else of_numbers if _is_number(x) else None


@overload(exponential, inline="always")
def _exponential(x):
    def of_numbers(x):
        return np.exp(x)

    def of_lanes(x):
        return _vector_exponential(x)

    return of_lanes if isinstance(x, Vec) else of_numbers if _is_number(x) else None


# not inlined by numba, which then takes its variables for ones that are not in scope, but by LLVM
@overload(positive_part, jit_options={"forceinline": True})
def _positive_part(x):
    def of_numbers(x):
        return x if x.real > 0.0 else 0.0 * x

    def of_lanes(x):
        return where_positive(x, x)

    return of_lanes if isinstance(x, Vec) else of_numbers if _is_number(x) else None


@overload(nan_unless_positive, jit_options={"forceinline": True})
def _nan_unless_positive(x, condition):
    def of_lanes(x, condition):
        return _lanes_or_nan(x, condition)

    return of_lanes if isinstance(x, Vec) else None


@overload(any_positive, jit_options={"forceinline": True})
def _any_positive(x):
    def of_numbers(x):
        return x > 0.0

    def of_lanes(x):
        return _any_lane_positive(x)

    return of_lanes if isinstance(x, Vec) else of_numbers if _is_number(x) else None


_FLUSH_TO_ZERO = 0x8040  # MXCSR bits FTZ and DAZ


@intrinsic
def flush_denormals(typing_context, enable):
    """Sets flush-to-zero of this thread (x86; elsewhere nothing) and returns the old control word.

    Call with -1 to switch it on, with the returned word to restore. A straight rod in float32 is
    full of products near 1e-40, and denormal arithmetic made such a batch three times slower.
    """
    if not isinstance(enable, types.Integer):
        return None

    def generate(context, builder, sig, args):
        if platform.machine() not in ("x86_64", "AMD64"):
            return ir.Constant(ir.IntType(64), 0)
        word_type = ir.IntType(32)
        pointer_type = ir.IntType(8).as_pointer()
        function_type = ir.FunctionType(ir.VoidType(), [pointer_type])
        store = cgutils.get_or_insert_function(
            builder.module, function_type, "llvm.x86.sse.stmxcsr"
        )
        load = cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.sse.ldmxcsr")
        memory = cgutils.alloca_once(builder, word_type)
        pointer = builder.bitcast(memory, pointer_type)
        builder.call(store, [pointer])
        old = builder.load(memory)
        wanted = builder.trunc(args[0], word_type)
        switched_on = builder.or_(old, ir.Constant(word_type, _FLUSH_TO_ZERO))
        new = builder.select(
            builder.icmp_signed("<", args[0], ir.Constant(args[0].type, 0)), switched_on, wanted
        )
        builder.store(new, memory)
        builder.call(load, [pointer])
        return builder.zext(old, ir.IntType(64))

    return types.int64(types.int64), generate
