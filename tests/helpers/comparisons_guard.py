"""While tests run, the package's own code may not compare Variables by value.

``==`` on Variables is elementwise, for users; a stage that asks it for identity builds a graph instead, or
fails where it needs the truth value. The guard speaks whenever the package's code asks, itself or through
what it calls: the lookup in a list or tuple, the comparison of two tuples or dataclasses.
"""

import sys
from pathlib import Path

import esat
from esat.graph.operators import Operators

PACKAGE = str(Path(esat.__file__).resolve().parent) + "/"
_TESTS = str(Path(__file__).resolve().parents[1]) + "/"


class ComparedByValueError(BaseException):
    """Not one of the exceptions that code under test may catch."""


def compared_by_the_package() -> str | None:
    """The line of the package that asks for a comparison, itself or by what it calls; None for a test's."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE):
            return f"{file}:{frame.f_lineno}"
        if file.startswith(_TESTS):
            return None
        frame = frame.f_back
    return None


def guard_comparisons() -> None:
    """Let comparisons fail that the package makes. Repeating it changes nothing."""
    for name in ("__eq__", "__ne__"):
        elementwise = getattr(Operators, name)
        if not hasattr(elementwise, "guarded"):
            setattr(Operators, name, _guarded(elementwise))


def _guarded(elementwise):
    def compare(self, other):
        # With anything else, as where a Variable is given for an option, what follows is an error anyway.
        place = compared_by_the_package() if isinstance(other, Operators) else None
        if place is not None:
            raise ComparedByValueError(f"{place} compares Variables by value; use `is`")
        return elementwise(self, other)

    # Errors name the operator, and the line of the user that compares, not this one.
    own = elementwise.__code__
    compare.__code__ = compare.__code__.replace(co_filename=own.co_filename, co_name=own.co_name)
    compare.guarded = True
    return compare
