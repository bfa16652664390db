"""What numba does with a function of printed loops, step by step: fewer steps than with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import compiler, compiler_machinery, ir
from numba.core.compiler_machinery import register_pass
from numba.core.interpreter import Interpreter
from numba.core.typed_passes import IRLegalization, NativeLowering
from numba.core.untyped_passes import TranslateByteCode

from esat.codegen.loop_compiler.lowering import LoopLowering

_COMPILER: Any = compiler
_MACHINERY: Any = compiler_machinery
# Numba annotates itself in part; these modules are used where it does not.

_NEEDLESS_PASSES = frozenset(
    {
        *("with_lifting", "rewrite_semantic_constants", "dead_branch_prune", "Rewrite dynamic raises"),
        *("make_function_op_code_to_jit_function", "inline_inlinables", "find_literally", "literal_unroll"),
        *("LiteralPropagation", "inline_overloads", "nopython_rewrites", "inline_closure_likes"),
        "ir_processing",
    }
)
"""Passes of numba for what printed loops do not have: contexts, closures, exceptions, expressions of arrays,
functions and branches that depend on types. Each of them looks at the whole function. The last one computes
what a later one computes anew."""

_NEEDLESS_REWRITINGS = frozenset({"peep_hole_delete_with_exit", "peep_hole_fuse_dict_add_updates"})
"""What numba rewrites in translated bytecode that holds contexts and dictionaries."""


def loop_passes(state: Any) -> Any:
    """Numba's manager of the passes for a function of loops, with the flags of a compilation."""
    flags = state.flags
    found = _managers.get(flags)
    if found is None:
        found = _MACHINERY.PassManager("loops")
        for one, description in _COMPILER.DefaultPassBuilder.define_nopython_pipeline(state).passes:
            if one.name() not in _NEEDLESS_PASSES:
                found.add_pass(_REPLACED.get(one, one), description)
        found.finalize()
        _managers[flags.copy()] = found
    return found


_managers: dict[Any, Any] = {}
_MOVES = (ir.Arg, ir.Var)
_MOVING = frozenset({"cast", "phi"})
"""Values and expressions that give a variable what is kept elsewhere."""


class _LoopInterpreter(Interpreter):
    """Numba's translator of bytecode, for functions of loops."""

    def post_process(self, peepholes: list[Callable[[Any], Any]], func_ir: Any) -> Any:
        needed = [one for one in peepholes if one.__name__ not in _NEEDLESS_REWRITINGS]
        return super().post_process(needed, func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoopTranslation(TranslateByteCode):
    """Numba's step from bytecode to its own code."""

    _name = "loop_translation"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = _LoopInterpreter(state.func_id).interpret(state.bc)
        return True


@register_pass(mutates_CFG=False, analysis_only=True)
class _LoopLegalization(IRLegalization):
    """Numba's step that finds where variables are given up; not where references need not be counted."""

    _name = "loop_legalization"

    def run_pass(self, state: Any) -> bool:
        if _owns_memory(state):
            return bool(super().run_pass(state))
        state.targetctx.enable_nrt = False
        return False


def _owns_memory(state: Any) -> bool:
    """Whether a variable holds something with a count of references, as arrays are, that is no argument."""
    made = {
        state.typemap[one.target.name]
        for block in state.func_ir.blocks.values()
        for one in block.find_insts(ir.Assign)
        if not isinstance(one.value, _MOVES) and getattr(one.value, "op", None) not in _MOVING
    }
    return any(state.targetctx.data_model_manager[type_].contains_nrt_meminfo() for type_ in made)


_REPLACED = {
    TranslateByteCode: _LoopTranslation,
    IRLegalization: _LoopLegalization,
    NativeLowering: LoopLowering,
}
