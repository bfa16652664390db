r"""The text of a kernel rewritten for the host: checks, and yields instead of barriers.

Where threads wait for one another, the kernel becomes a generator: a ``cuda.syncthreads()`` becomes
``yield 3``, where 3 is its number among all waits of the kernel; barriers of a warp, and shuffles, which
exchange values through an array of the block between two of them, yield negative numbers. Other kernels
become a loop over the threads of a block.

>>> text = "def kernel(o0, n0):\n    i0 = cuda.threadIdx.x\n    o0[i0] = float32(i0)\n"
>>> print(translated(text, ("o0",)).source)
def kernel(_order, _threads, _block_x, _block_y, _block_z, _grid_x, _grid_y, _grid_z, _tables, o0, n0):
    for _number in _order:
        _tables[4] = _number
        _thread = int32(_number)
        i0 = _thread
        o0[_checked(o0, i0, 1, 3, _tables)] = float32(i0)
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np
from gpu.emulator.functions import SEEN, THREAD_WORD, rubbish

from esat.base.records import record
from esat.errors import EmulationError
from esat.gpu.kernel_text.launches import DTYPES, LANES, WARP

_POSITIONS = ("_threads", *(f"_{what}_{axis}" for what in ("block", "grid") for axis in "xyz"))
"""Where a thread is, ``int32`` as on a device: parameters of a translated kernel, after the thread."""
_NAMES = {
    ("threadIdx", "x"): "_thread",
    ("blockDim", "x"): "_threads",
    **{("blockIdx", axis): f"_block_{axis}" for axis in "xyz"},
    **{("gridDim", axis): f"_grid_{axis}" for axis in "xyz"},
}
_SHUFFLE = "shfl_xor_"
_ATOMICS = ("atomic_add", "atomic_min", "atomic_max")
_VECTORS = MappingProxyType({f"{name}{lanes}": lanes for name in ("load", "store") for lanes in LANES})


@record(frozen=True)
class BlockArray:
    """An array that is made for each block.

    Attributes
    ----------
    size
        Elements for the block, or for each thread where it is its own or for exchanges.
    kind
        Whether threads share it, each has its own, they exchange values of shuffles through it, or it keeps
        when each element of a shared array was accessed.
    """

    name: str
    size: int
    dtype: str
    kind: Literal["shared", "own", "exchange", "seen"]

    def make(self, threads: int) -> np.ndarray:
        """The array for a block of so many threads; the last warp of an exchange is filled up."""
        if self.kind == "seen":
            return np.full(self.size, -1, self.dtype)
        sizes = {"shared": self.size, "own": self.size * threads, "exchange": -(-threads // WARP) * WARP}
        return rubbish(sizes[self.kind], self.dtype)


@record(frozen=True)
class Wait:
    """Where threads wait for one another: those of the block, or of a warp, which may exchange values only.

    An exchange says nothing of what threads read and wrote before it.
    """

    line: int
    kind: Literal["block", "warp", "exchange"]


@record(frozen=True)
class Translated:
    """A kernel for the host.

    Attributes
    ----------
    source
        One function ``kernel`` of a thread's number, or the numbers of all threads in their order; the size
        of a block, its place and the size of the grid; the tables of :mod:`~gpu.emulator.functions`; the
        arrays of the block; and the parameters of the kernel.
    arrays
        Of each block, in the order of parameters.
    waits
        By number, the first of which is 1; a number stands for one of a warp where a negative one is yielded.
    """

    source: str
    arrays: tuple[BlockArray, ...]
    waits: tuple[Wait, ...]

    @property
    def together(self) -> bool:
        """Whether threads of a block depend on one another, and run as generators."""
        return bool(self.waits) or any(one.kind == "shared" for one in self.arrays)


@functools.cache
def translated(text: str, pointers: tuple[str, ...]) -> Translated:
    """The kernel of ``text``, whose parameters ``pointers`` are pointers.

    Raises
    ------
    EmulationError
        A text that is no function of what emulated kernels may say.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise EmulationError(f"no Python: {error.msg}", line=error.lineno or 0, text=text) from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise EmulationError("the text is not one function", text=text)
    writer = _Writer(text, pointers)
    function = tree.body[0]
    function.body = writer.block(function.body)
    exchanges = (BlockArray(f"_exchange_{dtype}", 1, dtype, "exchange") for dtype in sorted(writer.exchanged))
    kernel = Translated("", (*writer.made, *exchanges), tuple(writer.waits))
    if kernel.together:
        function.body += ast.parse("yield 0").body
    tree = _Returns(text, kernel.together).visit(tree)
    if not kernel.together:
        loop = f"for _number in _order:\n    _tables[{THREAD_WORD}] = _number\n    _thread = int32(_number)"
        (head,) = ast.parse(loop).body
        assert isinstance(head, ast.For), "the text above is a loop"
        head.body += function.body
        function.body = [head]
    first = "_thread" if kernel.together else "_order"
    parameters = [first, *_POSITIONS, "_tables", *(one.name for one in kernel.arrays)]
    function.args.args = [*map(ast.arg, parameters), *function.args.args]
    return Translated(ast.unparse(ast.fix_missing_locations(tree)), kernel.arrays, kernel.waits)


class _Writer(ast.NodeTransformer):
    """Rewrites statements one by one; what must come before a statement is gathered in ``before``."""

    def __init__(self, text: str, pointers: Sequence[str]) -> None:
        self.text = text
        self.pointers = {name: number for number, name in enumerate(pointers, 1)}
        self.own: dict[str, int] = {}
        self.made: list[BlockArray] = []
        self.exchanged: set[str] = set()
        self.waits: list[Wait] = []
        self.before: list[ast.stmt] = []
        self.shuffles = 0

    # -- statements

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements, each after what it needs before it."""
        done: list[ast.stmt] = []
        for one in statements:
            new = self.statement(one)
            done += self.before
            self.before = []
            done += new
        return done or [ast.Pass()]

    def statement(self, one: ast.stmt) -> list[ast.stmt]:
        """What a statement becomes."""
        if isinstance(one, ast.If | ast.While):
            one.test = self.visit(one.test)
            if self.before:
                raise self.error("a shuffle in a condition", one)
            return [self.with_blocks(one)]
        if isinstance(one, ast.For):
            one.iter = self.visit(one.iter)
            return [self.with_blocks(one)]
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and not one.value.args:
            called = ast.unparse(one.value.func)
            if called in ("cuda.syncthreads", "cuda.syncwarp"):
                return self.wait(one, "block" if called == "cuda.syncthreads" else "warp")
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
            called = ast.unparse(one.value.func)
            if called in ("cuda.shared.array", "cuda.local.array"):
                self.array(one, one.value, called == "cuda.shared.array")
                return []
        if not isinstance(one, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Pass | ast.Return):
            raise self.error(f"a {type(one).__name__} statement", one)
        return [self.generic_visit(one)]  # type: ignore[list-item]

    def with_blocks(self, one: ast.If | ast.While | ast.For) -> ast.stmt:
        """A statement with statements inside, whose own expressions are done."""
        before, self.before = self.before, []
        one.body = self.block(one.body)
        one.orelse = self.block(one.orelse) if one.orelse else []
        self.before = before
        return one

    def array(self, one: ast.Assign, call: ast.Call, is_shared: bool) -> None:
        """A declaration: the scheduler makes the array."""
        if len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name) or len(call.args) != 2:
            raise self.error("a declaration is `name = cuda.shared.array(size, dtype)`", one)
        name, (size, dtype) = one.targets[0].id, map(ast.unparse, call.args)
        if not size.isdecimal() or dtype not in DTYPES:
            raise self.error("sizes of arrays are numbers, their dtypes names", one)
        if is_shared:
            self.pointers[name] = 0
            self.made.append(BlockArray(f"_seen_{name}", int(size) * SEEN, "int64", "seen"))
        else:
            self.own[name] = int(size)
        self.made.append(BlockArray(name, int(size), dtype, "shared" if is_shared else "own"))

    def wait(self, one: ast.stmt | ast.expr, kind: Literal["block", "warp", "exchange"]) -> list[ast.stmt]:
        """A barrier."""
        self.waits.append(Wait(one.lineno, kind))
        return ast.parse(f"yield {'' if kind == 'block' else '-'}{len(self.waits)}").body

    # -- expressions

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Where a thread is."""
        value = node.value
        if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "cuda":
            name = _NAMES.get((value.attr, node.attr))
            if name is None:
                raise self.error(f"emulated kernels have no {ast.unparse(node)}", node)
            return ast.Name(name, node.ctx)
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """An element of an array, at a place that is checked."""
        if not isinstance(node.value, ast.Name):
            raise self.error("only arrays have elements", node)
        name = node.value.id
        if name in self.own:
            self.generic_visit(node)
            place, size = ast.unparse(node.slice), self.own[name]
            node.slice = _expression(f"_own({place}, {size}, _thread, {node.lineno}, _tables)")
        elif self.pointers.get(name) == 0:
            self.generic_visit(node)
            access, place = (
                "_written" if isinstance(node.ctx, ast.Store) else "_read",
                ast.unparse(node.slice),
            )
            known = f"{name}, {place}, _seen_{name}, _thread, {node.lineno}, _tables"
            node.slice = _expression(f"{access}({known})")
        elif name in self.pointers:
            node.slice = self.place(node.value, self.visit(node.slice), node)
        else:  # a vector as a tuple, whose places numba checks
            self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Vectors, atomics and shuffles; other functions are called as they are."""
        self.generic_visit(node)
        called = ast.unparse(node.func)
        if called.startswith("cuda."):
            raise self.error(f"emulated kernels have no {called} here", node)
        if called == "mul_rn":
            return ast.BinOp(node.args[0], ast.Mult(), node.args[1])
        if called in _ATOMICS:
            node.args[1] = self.place(node.args[0], node.args[1], node)
        elif called in _VECTORS:
            known = f"({self.number(node.args[0], node)}, {node.lineno}, _tables)"
            node.args += ast.parse(known, mode="eval").body.elts  # type: ignore[attr-defined]
        elif called.startswith(_SHUFFLE):
            return self.shuffle(node, called.removeprefix(_SHUFFLE))
        return node

    def number(self, array: ast.expr, node: ast.expr) -> int:
        """Of a pointer, from 1; 0 of a shared array."""
        name = ast.unparse(array)
        if name not in self.pointers:
            raise self.error(f"{name} is no array that threads share", node)
        return self.pointers[name]

    def place(self, array: ast.expr, place: ast.expr, node: ast.expr) -> ast.expr:
        """A checked place in an array."""
        known = f"{self.number(array, node)}, {node.lineno}, _tables"
        return _expression(f"_checked({ast.unparse(array)}, {ast.unparse(place)}, {known})")

    def shuffle(self, node: ast.Call, dtype: str) -> ast.expr:
        """The value of another lane, which the threads of a warp exchange before the statement."""
        if dtype not in DTYPES or len(node.args) != 2:
            raise self.error(f"emulated kernels have no {ast.unparse(node)}", node)
        value, mask = map(ast.unparse, node.args)
        exchange, name = f"_exchange_{dtype}", f"_lane{self.shuffles}"
        self.exchanged.add(dtype)
        self.shuffles += 1
        self.before += ast.parse(f"{exchange}[_thread] = {value}").body
        self.before += self.wait(node, "exchange")
        self.before += ast.parse(f"{name} = {exchange}[_thread ^ ({mask})]").body
        self.before += self.wait(node, "exchange")
        return ast.Name(name, ast.Load())

    def error(self, reason: str, node: ast.stmt | ast.expr) -> EmulationError:
        return EmulationError(reason, line=node.lineno, text=self.text)


class _Returns(ast.NodeTransformer):
    """A generator says that it ends before it returns; a loop over threads goes on to the next."""

    def __init__(self, text: str, together: bool) -> None:
        self.text, self.together, self.loops = text, together, 0

    def _loop(self, node: ast.For | ast.While) -> ast.stmt:
        self.loops += 1
        self.generic_visit(node)
        self.loops -= 1
        return node

    visit_For = visit_While = _loop

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """Return, or what stands for it."""
        if self.together:
            return [*ast.parse("yield 0").body, node]
        if self.loops:
            raise EmulationError("a return within a loop", line=node.lineno, text=self.text)
        return [ast.Continue()]


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
