"""All launches of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import (
    Check,
    Definition,
    Kernel,
    Load,
    LoadAt,
    Loop,
    Scatter,
    Statement,
    Store,
    Tile,
    operands_of,
    walk,
)
from esat.gpu.kernel_text.launches import Launch, Launches, LaunchVariant, Workspace
from esat.gpu.kernel_text.templates import NoDeviceFormError
from esat.gpu.printing.body import Body, definitions_in, lanes_along
from esat.gpu.printing.columns import Columns
from esat.gpu.printing.flat import BLOCK, print_flat
from esat.gpu.printing.full import load_result, print_final, print_partial
from esat.gpu.printing.gathering import Gathering
from esat.gpu.printing.nests import Nest, needed_by, nest_of, without_kept
from esat.gpu.printing.rows import Rows, plan_rows
from esat.gpu.printing.rows_split import SharedRows
from esat.gpu.printing.source import UnprintableError
from esat.gpu.printing.splitting import Shared, gathers_apart, split
from esat.gpu.printing.tiles import axis_across, print_tiles


def print_launches(kernel: Kernel, variant: LaunchVariant) -> Launches:
    """The kernels for a device that do what a kernel of the loop IR does.

    Parameters
    ----------
    kernel
        As lowered, of arrays of all dtypes that have kernel code.
    variant
        What the arrays are like; :func:`esat.gpu.printing.variant_for` tells.

    Returns
    -------
    Launches, each of pointers to C-contiguous outputs and inputs (or with strides) and ``int64`` sizes. What
    is gathered is combined in an order that sizes alone decide.

    Raises
    ------
    UnprintableError
        When a template has no text for a device, or results would be read after they are written over.
    """
    try:
        return _Program(kernel if variant.strided else collapse(kernel), variant).run()
    except NoDeviceFormError as error:
        raise UnprintableError(str(error)) from error


class _Program:
    def __init__(self, kernel: Kernel, variant: LaunchVariant) -> None:
        self.kernel = kernel
        self.variant = variant
        self.launches: list[Launch] = []
        self.workspaces: dict[str, Workspace] = {}
        self.known: list[Definition] = []
        """Definitions outside of loops so far; launches compute again what they need of them."""
        self.gathered: dict[int, str] = {}
        """Values that earlier launches left in memory -> their dtype."""
        self.written: set[int] = set()

    def run(self) -> Launches:
        if any(isinstance(one, LoadAt | Scatter | Check) for one in walk(self.kernel.body)):
            raise UnprintableError("parts that values choose are read by the device's library")
        statements = list(self.kernel.body)
        while statements:
            if alone := _leading(statements):
                self._alone(alone)
                continue
            one = statements.pop(0)
            assert isinstance(one, Loop | Tile)
            nest = nest_of(one)
            if nest.family == "full":
                self._full(nest, statements)
            else:
                self._print(nest, one)
            self.written |= {part.array for part in walk((one,)) if isinstance(part, Store)}
        return Launches(tuple(self.launches), self.workspaces)

    def _alone(self, statements: Sequence[Statement]) -> None:
        """Statements outside of loops: definitions are kept in mind, stores are one launch of a thread."""
        stores = [one for one in statements if isinstance(one, Store)]
        if stores:
            body = Gathering(self.kernel, None, 1, self.variant.strided)
            self._begin(body, statements)
            with body.source.block("if cuda.threadIdx.x == 0"):
                body.sequence(statements, {})
            self._add(body, "points", 32, "1")
            self.written |= {one.array for one in stores}
        self.known += definitions_in(statements)

    def _begin(self, body: Body, statements: Sequence[Statement]) -> None:
        """What statements need of the definitions outside of loops."""
        definitions, needed = needed_by(statements, self.known)
        if any(isinstance(one, Load) and one.array in self.written for one in definitions):
            raise UnprintableError("a number is read that an earlier launch has written over")
        for value, dtype in self.gathered.items():
            if value in needed:
                load_result(body, value, dtype)
        for one in definitions:
            body.definition(one, {})

    def _add(self, body: Body, family: str, block: int, grid: str) -> None:
        self.launches.append(body.launch(family, block, grid, self.workspaces))

    def _lanes(self, nest: Nest) -> int:
        if not self.variant.vector or nest.inner is None:
            return 1
        return lanes_along(self.kernel, nest.inner, self.variant.strided)

    def _print(self, nest: Nest, statement: Statement) -> None:
        kernel, strided, lanes = self.kernel, self.variant.strided, self._lanes(nest)
        plan = plan_rows(kernel, nest, lanes, self.variant.longest_row) if nest.family == "rows" else None
        if nest.family == "columns" or (plan is not None and not plan.parts):
            nest = without_kept(nest)
        if self.variant.split and nest.family in ("rows", "columns") and gathers_apart(nest):
            self._split(nest, statement, lanes)
        elif plan is not None:
            rows = Rows(kernel, nest, lanes, strided, plan, self.variant.threads_across)
            self._begin(rows, (statement,))
            self._add(rows, "rows", *rows.run())
        elif nest.family == "columns":
            columns = Columns(kernel, nest, lanes, strided, self.variant.threads_across)
            self._begin(columns, (statement,))
            self._add(columns, "columns", *columns.run())
        elif nest.family == "flat" and not strided and (across := axis_across(nest)) is not None:
            tiles = Body(kernel, nest.inner, 1, strided)
            self._begin(tiles, (statement,))
            self._add(tiles, "tiles", *print_tiles(tiles, nest, across))
        elif nest.family == "flat":
            flat = Body(kernel, nest.inner, lanes, strided)
            self._begin(flat, (statement,))
            grid = print_flat(flat, nest, self.variant.threads_across)
            self._add(flat, "flat", BLOCK, grid)
        else:
            self._points(nest, statement)

    def _split(self, nest: Nest, statement: Statement, lanes: int) -> None:
        """What blocks gather together: launches of their own for each loop."""
        kernel, variant = self.kernel, self.variant

        def new_body(lanes: int) -> Shared:
            body: Shared = (
                SharedRows(kernel, nest, lanes, variant.strided)
                if nest.family == "rows"
                else Columns(kernel, nest, lanes, variant.strided, variant.threads_across)
            )
            self._begin(body, (statement,))
            return body

        for body, grid, workspaces in split(nest, lanes, new_body):
            self.workspaces |= workspaces
            self._add(body, nest.family, BLOCK, grid)

    def _points(self, nest: Nest, statement: Statement) -> None:
        """A thread for each place of the outer loops, which runs what is inside."""
        body = Gathering(self.kernel, None, 1, self.variant.strided)
        self._begin(body, (statement,))
        units = body.units(nest.axes, 1) if nest.axes else "1"
        body.source.line(f"unit = int64(cuda.blockIdx.x) * {BLOCK} + cuda.threadIdx.x")
        with body.source.block(f"if unit < {units}"):
            position = body.split(nest.axes, "unit")
            body.sequence((*nest.before, *nest.body), position)
        self._add(body, "points", BLOCK, f"-(-({units}) // {BLOCK})")

    def _full(self, nest: Nest, rest: list[Statement]) -> None:
        lanes, strided = self._lanes(nest), self.variant.strided
        partial = Gathering(self.kernel, nest.inner, lanes, strided)
        self._begin(partial, nest.body)
        grid, workspaces = print_partial(partial, nest)
        self.workspaces |= workspaces
        self._add(partial, "full", BLOCK, grid)
        following = _leading(rest)
        results = {part.value: part.result_dtype for part in nest.accumulators}
        later = {operand for one in walk((*following, *rest)) for operand in operands_of(one)}
        final = Gathering(self.kernel, nest.inner, lanes, strided)
        self._begin(final, following)
        needed = {value: dtype for value, dtype in results.items() if rest and value in later}
        self.workspaces |= print_final(final, nest, following, needed)
        self._add(final, "final", BLOCK, "1")
        self.gathered |= results
        self.known += definitions_in(following)
        self.written |= {one.array for one in following if isinstance(one, Store)}


def _leading(statements: list[Statement]) -> list[Statement]:
    """Take away the statements before the first loop."""
    count = next((place for place, one in enumerate(statements) if isinstance(one, Loop | Tile)), None)
    found = statements[:count]
    del statements[:count]
    return found
