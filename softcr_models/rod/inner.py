"""How functions are compiled that only compiled code calls, and kernels that call them.

Numba finishes every function as if Python called it: it optimises its text, makes machine code of
it and wraps that for Python and for C, and does all of it again in every function that calls it. Of
the rod's kernels only a dozen are called from Python, and some 70 functions stand below each of
them. Here they stay text, which is optimised and becomes machine code once, as a part of the
kernel: that takes half of the time, and the kernels are as fast.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import register_jitable

inner = register_jitable(no_cfunc_wrapper=True)
"""Decorator of a function of Python that kernels call as well."""

inlined = register_jitable(forceinline=True, no_cfunc_wrapper=True)
"""Decorator of one that becomes a part of each kernel that calls it, and so does what it calls."""


@contextmanager
def _becoming(codegen: Any, library: type[JITCodeLibrary]) -> Iterator[None]:
    """What is compiled or loaded in the block becomes such a library."""
    before = codegen._library_class
    codegen._library_class = library
    try:
        yield
    finally:
        codegen._library_class = before


class _Text(JITCodeLibrary):
    """A function as LLVM's text, neither optimised nor machine code."""

    def finalize(self) -> None:
        """Put in what it calls, as text."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        """A kernel of the cache, met while one that calls it is compiled: it is machine code, which
        Python may call afterwards. As text it would have the address 0, and such a call would
        jump there."""
        with _becoming(codegen, JITCodeLibrary):
            return JITCodeLibrary._unserialize(codegen, state)

    def get_pointer_to_function(self, name: str) -> int:
        """0: there is no machine code, as for a name that is not defined."""
        return 0

    @property
    def codegen(self) -> Any:
        """Whom numba tells the function's environment."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Nothing: an environment is for machine code."""


class KernelCompiler(Compiler):
    """Numba's compiler of a kernel, which leaves what the kernel calls as text.

    What is called must not be called from Python, too, unless it is a kernel of this compiler
    itself, or a function of `inner`, which Python runs as it is.
    """

    def _compile_core(self) -> Any:
        state, codegen = self.state, self.state.targetctx.codegen()
        state.library = JITCodeLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()  # as numba does where it makes the library
        with _becoming(codegen, _Text):
            return super()._compile_core()
