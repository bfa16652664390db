"""Query: which optimizations to take from a database, by their tags."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from esat.base.records import record
from esat.errors import OptimizerError
from esat.graph.calls.arguments import instance_of, mapping_of, sequence_of


def _tags(argument: str, values: Iterable[str] | None) -> frozenset[str]:
    if isinstance(values, str):
        raise OptimizerError(f"tags are given as a list: [{values!r}], not {values!r}")
    return frozenset(() if values is None else sequence_of("Query", argument, values, str))


@record(frozen=True, slots=True, init=False)
class Query:
    """A choice of optimizations.

    Attributes
    ----------
    include
        Taken is what has one of these tags ...
    require
        ... and all of these ...
    exclude
        ... and none of these.
    subquery
        Name of a sub-database -> the Query to use there instead of this one.
    """

    include: frozenset[str]
    require: frozenset[str]
    exclude: frozenset[str]
    subquery: Mapping[str, Query] = field(hash=False)

    def __init__(
        self,
        include: Iterable[str],
        require: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        subquery: Mapping[str, Query] | None = None,
    ) -> None:
        object.__setattr__(self, "include", _tags("include", include))
        object.__setattr__(self, "require", _tags("require", require))
        object.__setattr__(self, "exclude", _tags("exclude", exclude))
        others = mapping_of("Query", "subquery", subquery)
        for name, query in others.items():
            instance_of("Query", "subquery", name, str)
            instance_of("Query", "subquery", query, Query)
        object.__setattr__(self, "subquery", dict(others))

    def including(self, *tags: str) -> Query:
        """The same Query, also taking what has one of the tags."""
        return self._with(include=self.include | _tags("tags", tags))

    def requiring(self, *tags: str) -> Query:
        """The same Query, taking only what has all the tags."""
        return self._with(require=self.require | _tags("tags", tags))

    def excluding(self, *tags: str) -> Query:
        """The same Query, taking nothing that has one of the tags."""
        return self._with(exclude=self.exclude | _tags("tags", tags))

    def _with(self, **changes: frozenset[str]) -> Query:
        sets = {"include": self.include, "require": self.require, "exclude": self.exclude, **changes}
        return Query(sets["include"], sets["require"], sets["exclude"], self.subquery)

    def admits(self, name: str, tags: Collection[str]) -> bool:
        """Whether what is given anyway may stay: it has all that is required and nothing excluded."""
        labels = _labels("admits", name, tags)
        return self.require <= labels and not self.exclude & labels

    def selects(self, name: str, tags: Collection[str]) -> bool:
        """Whether an optimization of this name and these tags is taken. Its name counts as a tag."""
        return bool(self.include & _labels("selects", name, tags)) and self.admits(name, tags)


def _labels(call: str, name: str, tags: Collection[str]) -> frozenset[str]:
    return frozenset({instance_of(call, "name", name, str), *sequence_of(call, "tags", tags, str)})
