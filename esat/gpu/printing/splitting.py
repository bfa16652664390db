"""What several blocks gather together: each leaves partial results, and a further launch combines them.

So it is with the rows of few columns, and with few rows that are long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from esat.codegen.kernel.loop_ir import Definition, Load, Loop, Statement, Store
from esat.gpu.kernel_text.launches import Workspace
from esat.gpu.printing.body import Position, definitions_in
from esat.gpu.printing.columns import Columns
from esat.gpu.printing.nests import Nest, needed_by, parts_of
from esat.gpu.printing.rows_split import SharedRows

Shared: TypeAlias = Columns | SharedRows
Part = tuple[Shared, str, dict[str, Workspace]]
"""The body of a launch, its grid, and where it leaves results."""


def gathers_apart(nest: Nest) -> bool:
    """Whether blocks can share what is gathered, and nothing is read that was written over.

    Each launch computes again what is defined outside of loops.
    """
    loops = [one for one in nest.body if isinstance(one, Loop)]
    stored = {one.array for one in nest.body if isinstance(one, Store)}
    read = {one.array for one in definitions_in((*nest.before, *nest.body)) if isinstance(one, Load)}
    return any(one.accumulators for one in loops) and stored.isdisjoint(read)


def split(nest: Nest, lanes: int, new_body: Callable[[int], Shared]) -> Iterator[Part]:
    """The launches of a nest, in order.

    Parameters
    ----------
    new_body
        Begins a launch whose threads take so many neighbours.
    """
    return _Split(new_body, lanes).run(parts_of(nest.body))


class _Split:
    def __init__(self, new_body: Callable[[int], Shared], lanes: int) -> None:
        self.new_body = new_body
        self.lanes = lanes
        self.known: list[Definition] = []
        """Definitions outside of loops so far."""
        self.results: dict[int, str] = {}
        """What earlier launches gathered -> its dtype."""

    def run(self, parts: list[Loop | list[Statement]]) -> Iterator[Part]:
        """A launch for each part; two for a loop that gathers, the second with what follows it."""
        while parts:
            part = parts.pop(0)
            if isinstance(part, list):
                self.known += definitions_in(part)
                if stores := _stores_in(part):
                    body = self.new_body(1)
                    body.stores(stores, self._begin(body, stores))
                    yield body, body.grid, {}
                continue
            body = self.new_body(self.lanes)
            splits = body.splits(part)
            position = self._begin(body, (part,), splits)
            body.gather(part, position, splits=True)
            found = body.leave_partial(part, splits) if part.accumulators else {}
            yield body, f"{splits} * {body.grid}", found
            if part.accumulators:
                following = parts.pop(0) if parts and isinstance(parts[0], list) else []
                assert isinstance(following, list)
                yield self._combined(part, splits, following, parts)

    def _begin(self, body: Shared, statements: Sequence[Statement], splits: str = "") -> Position:
        """What a launch computes again for statements."""
        position = body.begin(splits)
        definitions, values = needed_by(statements, self.known)
        body.load_results([(value, dtype) for value, dtype in self.results.items() if value in values])
        body.keep_lanes(one.value for one in definitions)
        body.direct(definitions, position)
        return position

    def _combined(
        self, loop: Loop, splits: str, following: list[Statement], rest: Sequence[Loop | list[Statement]]
    ) -> Part:
        """The launch that combines what blocks gathered, and stores what follows from it."""
        body, stores = self.new_body(1), _stores_in(following)
        gathered = {one.value: one.result_dtype for one in loop.accumulators}
        position = body.begin()
        body.take_partial(loop, splits)
        self.known += definitions_in(following)
        definitions, values = needed_by(stores, self.known)
        body.load_results([(value, dtype) for value, dtype in self.results.items() if value in values])
        body.direct(definitions, position)
        body.stores(stores, position)
        later = [one for part in rest for one in (part if isinstance(part, list) else (part,))]
        _, values = needed_by(later, self.known)
        needed = {value: dtype for value, dtype in gathered.items() if value in values}
        self.results |= needed
        return body, body.grid, body.leave_results(needed)


def _stores_in(statements: Sequence[Statement]) -> list[Store]:
    return [one for one in statements if isinstance(one, Store)]
