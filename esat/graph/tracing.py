"""What stands for Variables while a function of arrays is traced, as far as graphs and ops know of it.

``esat.frontend.tracing`` has what a traced function is given in place of arrays and numbers: objects that
behave as these, each with a Variable behind it. Ops take the Variable; public functions that a traced
function calls are given Variables and hand out such objects again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from esat.graph.scoped import Block, Scoped

if TYPE_CHECKING:
    from esat.graph.variables import Variable


class Traced:
    """An object that stands for a Variable."""

    __slots__ = ()

    @property
    def variable(self) -> Variable:
        """What it stands for now."""
        raise NotImplementedError


class WeakNumber(Traced):
    """A Python number whose value is known at run time only: it takes the dtype of what it meets.

    Attributes
    ----------
    kind
        The Python type: int, float or complex.
    """

    __slots__ = ("_variable", "kind")

    def __init__(self, variable: Variable, kind: type) -> None:
        self._variable = variable
        self.kind = kind

    @property
    def variable(self) -> Variable:
        """A scalar of the dtype that NumPy gives the type."""
        return self._variable

    def known(self) -> Any:
        """The value, where what is computed hangs on it; raises for one who can tell it."""
        raise NotImplementedError


Adapter: TypeAlias = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Calls a function with Variables in place of what stands for them, and hands out what stands for results."""

_adapter = Scoped[Adapter]("adapter")


def adapting(adapter: Adapter) -> Block[Adapter]:
    """Let public functions that are called from outside the package be called through ``adapter``."""
    return _adapter.set(adapter)


def current_adapter() -> Adapter | None:
    """How a traced function's calls of public functions are made; None where no function is traced."""
    return _adapter.get()
