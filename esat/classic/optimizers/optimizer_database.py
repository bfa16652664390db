"""Databases of optimizers: named, tagged, ordered by position, and turned into optimizers by a Query.

``optdb`` (``esat.classic.standard``) is the one that modes query. A database of local optimizers also
takes part of the rules of the rule files: rules and Python optimizers stand in the same place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Literal, TypeVar

from esat.base.records import record
from esat.base.spelling import suggestion
from esat.classic.optimizers.equilibrium import EquilibriumOptimizer
from esat.classic.optimizers.global_optimizers import Optimizer, SeqOptimizer
from esat.classic.optimizers.local import LocalOptimizer
from esat.classic.optimizers.marker import Marker
from esat.classic.rules.rule_options import RuleOptions
from esat.classic.rules.rule_phase import RuleSource
from esat.errors import OptimizerError
from esat.graph.calls.arguments import instance_of, stream_of
from esat.graph.changes import note_change
from esat.rules.language.query import Query

Registered = TypeVar("Registered", bound="LocalOptimizer | Optimizer | DB")

DESTROY_HANDLER = 50.0
"""Position from which optimizers may insert operations that overwrite their inputs."""


@record(frozen=True, slots=True)
class Entry:
    """One registration.

    Attributes
    ----------
    name
        Unique in its database.
    object
        The optimizer, or a database of them.
    tags
        What a Query selects it by, beside its name.
    position
        Its place in a sequence; 0 in an equilibrium, which has no order.
    native
        Whether saturation does by itself what it does.
    """

    name: str
    object: LocalOptimizer | Optimizer | DB
    tags: frozenset[str]
    position: float = 0.0
    native: bool = False


class DB:
    """Named and tagged optimizers. Functions compiled before a registration do not change by it."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.allows_inplace = True
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The registrations, in order of their positions."""
        with self._lock:
            return tuple(sorted(self._entries.values(), key=lambda entry: entry.position))

    def __getitem__(self, name: str) -> LocalOptimizer | Optimizer | DB:
        """What is registered under a name. Raises OptimizerError for an unknown one."""
        return self._find(name).object

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {len(self._entries)} entries>"

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def remove(self, name: str) -> None:
        """Forget a registration. Raises OptimizerError for an unknown name."""
        self._find(name)
        with self._lock:
            del self._entries[name]
        note_change()

    def _find(self, name: str) -> Entry:
        entry = self._entries.get(instance_of(type(self).__name__, "name", name, str))
        if entry is None:
            hint = suggestion(name, list(self._entries))
            raise OptimizerError(f"nothing is registered as {name!r} in {self.name or 'the database'}{hint}")
        return entry

    def add_tags(self, name: str, *tags: str) -> None:
        """Let queries select a registration by these tags as well."""
        self._retag(name, lambda known: known | set(tags))

    def remove_tags(self, name: str, *tags: str) -> None:
        """Let queries select a registration by these tags no more; its name stays one."""
        self._retag(name, lambda known: known - set(tags))

    def _retag(self, name: str, change: Callable[[frozenset[str]], frozenset[str]]) -> None:
        entry = self._find(name)
        changed = replace(entry, tags=change(entry.tags))
        self._check_labels(changed)
        with self._lock:
            self._entries[name] = changed
        note_change()

    def _add(self, entry: Entry) -> None:
        self._check_labels(entry)
        if isinstance(entry.object, DB) and not self.allows_inplace:
            entry.object.forbid_inplace(f"{self.name or 'the database around it'} runs before it")
        with self._lock:
            if entry.name in self._entries:
                raise OptimizerError(f"the name {entry.name!r} is taken in {self.name or 'the database'}")
            self._entries[entry.name] = entry
        note_change()

    def _check_labels(self, entry: Entry) -> None:
        for label in (entry.name, *entry.tags):
            if not isinstance(label, str) or not label:
                raise OptimizerError(f"names and tags are non-empty strings, not {label!r}")
        if "inplace" in entry.tags and not self.allows_inplace:
            raise OptimizerError(_inplace_reason(entry.name, f"{self.name or 'its database'} runs before it"))

    def forbid_inplace(self, why: str) -> None:
        """Refuse what works in place, here and in the databases inside, now and from now on."""
        for entry in self.entries:
            if "inplace" in entry.tags:
                raise OptimizerError(_inplace_reason(entry.name, why))
            if isinstance(entry.object, DB):
                entry.object.forbid_inplace(why)
        self.allows_inplace = False

    def subquery(self, query: Query) -> Query:
        """What a Query means here: the subquery for this database, if it has one."""
        return instance_of("query", "query", query, Query).subquery.get(self.name, query)

    def selected(self, query: Query) -> list[Entry]:
        """Entries that a Query selects, in order; sub-databases that it does not exclude."""
        own = self.subquery(query)
        return [entry for entry in self.entries if self._selects(own, entry)]

    def _selects(self, query: Query, entry: Entry) -> bool:
        labels = {entry.name, *entry.tags}
        if isinstance(entry.object, DB):
            return not query.exclude & labels
        return query.selects(entry.name, {*entry.tags, self.name} - {""})

    def query(
        self, query: Query | str, *tags: str, options: RuleOptions | None = None, **subquery: Query
    ) -> Optimizer:
        """The optimizer that consists of what a Query selects.

        Parameters
        ----------
        query, tags
            A Query; or tags, as ``"+fast_run"`` to include, ``"&exact"`` to require and ``"-inplace"`` to
            exclude.
        options
            How rules are selected and applied, beside their tags.
        subquery
            Where tags are given: name of a database inside -> the Query to use there.

        Raises
        ------
        OptimizerError
            For a tag without a sign, and for tags or subqueries beside a Query.
        """
        raise NotImplementedError

    def print_summary(self, file: IO[str] | None = None) -> None:
        """Print all registrations, by default to standard output."""
        print("\n".join(self.summary()), file=stream_of("print_summary", file))

    def summary(self) -> list[str]:
        """Lines that :meth:`print_summary` prints."""
        lines = [f"{type(self).__name__} {self.name}"]
        for entry in self.entries:
            tags = ", ".join(sorted(entry.tags))
            if isinstance(entry.object, DB):
                first, *rest = entry.object.summary()
                lines += [f"  {entry.position:6g}  {first} [{tags}]", *("        " + line for line in rest)]
            else:
                lines.append(f"  {entry.position:6g}  {entry.name} ({type(entry.object).__name__}) [{tags}]")
        return lines


class EquilibriumDB(DB):
    """Optimizers that are applied over and over until none of them changes the graph.

    Parameters
    ----------
    name
        By which queries and subqueries know it.
    rules
        The rules of rule files that take part beside what is registered.
    """

    def __init__(self, name: str = "", rules: RuleSource | None = None) -> None:
        super().__init__(name)
        self.rules = rules

    def register(
        self,
        name: str,
        optimizer: LocalOptimizer | Optimizer | EquilibriumDB | str | Path,
        *tags: str,
        native: bool = False,
    ) -> None:
        """Add an optimizer, a database of local ones, or rules.

        Parameters
        ----------
        name
            By which it is known; counts as a tag.
        optimizer
            Usually a LocalOptimizer, which sees every node; a global one runs once a pass. A text or the
            path of a file holds rules in egglog syntax: they go to the rule database, which knows them by
            their own names, and have ``name`` and the name of this database as tags.
        tags
            What queries select it by, for example ``fast_run``.
        native
            Whether saturation does by itself what the optimizer does, so that e-graph modes skip it.

        Raises
        ------
        OptimizerError
            For a name that is taken, an object of another kind, or the tag ``inplace`` in a database that
            runs before the destroy handler.
        RuleError
            For rules that cannot be read.
        """
        if isinstance(optimizer, (str, Path)):
            if self.rules is None:
                raise OptimizerError(f"{self.name or 'this database'} takes no rules")
            self.rules.database.load(optimizer, tags=(self.rules.tag, name, *tags))
            return
        if not isinstance(optimizer, (LocalOptimizer, Optimizer, EquilibriumDB)):
            raise OptimizerError(f"{name!r} is a {type(optimizer).__name__}, not an optimizer")
        self._add(Entry(name, optimizer, frozenset(tags), native=native))

    def locals(self, query: Query) -> list[Entry]:
        """Selected entries, those of databases inside included."""
        found: list[Entry] = []
        own = self.subquery(query)
        for entry in self.selected(query):
            found += entry.object.locals(own) if isinstance(entry.object, EquilibriumDB) else [entry]
        return found

    def query(
        self, query: Query | str, *tags: str, options: RuleOptions | None = None, **subquery: Query
    ) -> EquilibriumOptimizer:
        query = query_of(query, tags, subquery)
        found = [entry.object for entry in self.locals(query)]
        optimizers = [
            one
            for one in found
            if isinstance(one, (LocalOptimizer, Optimizer)) and not isinstance(one, Marker)
        ]
        if self.rules is not None:
            normalizes = len(optimizers) < len(found)
            own = self.subquery(query)
            optimizers = [*self.rules.optimizers(own, options or RuleOptions(), normalizes), *optimizers]
        return EquilibriumOptimizer(optimizers, name=self.name)


class SequenceDB(DB):
    """Global optimizers and databases, in the order of their positions."""

    def register(
        self,
        name: str,
        optimizer: Optimizer | DB,
        position: float | Literal["last"],
        *tags: str,
        native: bool = False,
    ) -> None:
        """Add an optimizer, or a database of them.

        Parameters
        ----------
        name
            By which it is known; counts as a tag.
        optimizer
            A global optimizer, or a database that a query turns into one.
        position
            Its place in the sequence; equal positions keep the order of registration. ``"last"`` is one
            behind the last there is.
        tags
            What queries select it by, for example ``fast_run``.
        native
            Whether saturation does by itself what the optimizer does, so that e-graph modes skip it.

        Raises
        ------
        OptimizerError
            For a name that is taken, an object of another kind, or an optimizer tagged ``inplace`` before
            position 50.
        """
        if isinstance(optimizer, LocalOptimizer):
            raise OptimizerError(
                f"{name!r} is a local optimizer: register TopoOptimizer({name}), or register it in a"
                ' database such as optdb["canonicalize"]'
            )
        if not isinstance(optimizer, (Optimizer, DB)):
            raise OptimizerError(f"{name!r} is a {type(optimizer).__name__}, not an optimizer")
        if position == "last":
            position = max((entry.position + 1 for entry in self), default=0.0)
        if isinstance(position, bool) or not isinstance(position, (int, float)):
            raise OptimizerError(f"the position of {name!r} is a number or 'last', not {position!r}")
        if position < DESTROY_HANDLER:
            if "inplace" in tags:
                raise OptimizerError(_inplace_reason(name, f"its position {position:g} is below 50"))
            if isinstance(optimizer, DB):
                optimizer.forbid_inplace(f"position {position:g} is below 50")
        if isinstance(optimizer, DB) and not optimizer.name:
            optimizer.name = name
        self._add(Entry(name, optimizer, frozenset(tags), float(position), native))

    def query(
        self, query: Query | str, *tags: str, options: RuleOptions | None = None, **subquery: Query
    ) -> QueriedOptimizer:
        """A sequence of what the Query selects; sub-databases are asked the same, or their subquery."""
        query = query_of(query, tags, subquery)
        own = self.subquery(query)
        names, optimizers = [], []
        for entry in self.selected(query):
            found = entry.object
            optimizer = found.query(own, options=options) if isinstance(found, DB) else found
            assert isinstance(optimizer, Optimizer)
            if not (isinstance(found, DB) and is_empty(optimizer)):
                names.append(entry.name)
                optimizers.append(optimizer)
        return QueriedOptimizer(self, query, optimizers, names, options)


class QueriedOptimizer(SeqOptimizer):
    """The answer of a SequenceDB to a Query; refined, it is the answer to the refined Query."""

    def __init__(
        self,
        database: SequenceDB,
        query: Query,
        optimizers: list[Optimizer],
        names: list[str],
        options: RuleOptions | None,
    ) -> None:
        super().__init__(optimizers, database.name, names)
        self.database = database
        self.query = query
        self.options = options

    def including(self, *tags: str) -> QueriedOptimizer:
        """The same, with what has one of the tags as well."""
        return self.database.query(self.query.including(*tags), options=self.options)

    def requiring(self, *tags: str) -> QueriedOptimizer:
        """The same, with only what has all the tags."""
        return self.database.query(self.query.requiring(*tags), options=self.options)

    def excluding(self, *tags: str) -> QueriedOptimizer:
        """The same, without what has one of the tags."""
        return self.database.query(self.query.excluding(*tags), options=self.options)


def query_of(
    query: Query | str, tags: Sequence[str] = (), subquery: Mapping[str, Query] | None = None
) -> Query:
    """A Query as it is, or one of signed tags; see :meth:`DB.query`."""
    if isinstance(query, Query):
        if tags or subquery:
            raise OptimizerError("a Query holds all tags and subqueries itself: give it alone")
        return query
    signs: dict[str, list[str]] = {"+": [], "&": [], "-": []}
    for tag in (query, *tags):
        if not isinstance(tag, str) or len(tag) < 2 or tag[0] not in signs:
            raise OptimizerError(f'tags are written "+fast_run", "&exact" or "-inplace", not {tag!r}')
        signs[tag[0]].append(tag[1:])
    return Query(signs["+"], signs["&"], signs["-"], subquery)


def is_empty(optimizer: Optimizer) -> bool:
    """Whether an optimizer that a database was turned into consists of nothing."""
    if isinstance(optimizer, SeqOptimizer):
        return not len(optimizer)
    return isinstance(optimizer, EquilibriumOptimizer) and not (optimizer.locals or optimizer.globals)


def registrar(database: EquilibriumDB) -> Callable[..., Callable[[Registered], Registered]]:
    """A decorator that registers in a database: ``@register_canonicalize("fast_run")``.

    The tags are ``fast_run`` where none are given; the name is that of the optimizer.
    """

    def register(*tags: str, name: str = "") -> Callable[[Registered], Registered]:
        def decorate(optimizer: Registered) -> Registered:
            if isinstance(optimizer, LocalOptimizer | Optimizer):
                database.register(name or optimizer.label, optimizer, *(tags or ("fast_run",)))
                return optimizer
            raise OptimizerError(f"{optimizer!r} is not an optimizer; put @local_optimizer below")

        return decorate

    return register


def _inplace_reason(name: str, why: str) -> str:
    return (
        f"the optimizer {name!r} works in place, so it must come after add_destroy_handler (49.5), at 50 or"
        f" later: {why}. Before it nothing checks who still needs what is overwritten"
    )
