"""Names of a function: what its statements assign to, and where one may be looked at that nothing was
assigned to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ENDING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def assigned_names(body: Sequence[ast.AST]) -> list[str]:
    """The names that statements assign to, in their own function."""
    return list(dict.fromkeys(name for one in body for name in _assigned(one)))


def _assigned(node: ast.AST) -> Iterator[str]:
    if isinstance(node, SCOPES):
        if not isinstance(node, ast.Lambda):
            yield node.name
        return
    if isinstance(node, COMPREHENSIONS):
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                yield part.target.id
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias) and node.name != "*":
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name is not None:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest
    for part in ast.iter_child_nodes(node):
        yield from _assigned(part)


def half_bound_names(arguments: ast.arguments, body: Sequence[ast.stmt]) -> frozenset[str]:
    """Names of a function that it may look at where nothing was assigned to them.

    What is said of a name holds whatever conditions are: a loop may have no steps, and one of two branches
    is run.
    """
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    given += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    own = {*assigned_names(body)} - {one.arg for one in given}
    if not own:
        return frozenset()
    search = _Search(own)
    search.run(body, set())
    return frozenset(search.found)


class _Search:
    """Goes through statements in their order, with the names that are surely assigned to before."""

    def __init__(self, own: set[str]) -> None:
        self._own = own
        self.found: set[str] = set()

    def run(self, body: Sequence[ast.stmt], known: set[str]) -> set[str] | None:
        """The names that are assigned to after statements; None where these lead elsewhere."""
        for node in body:
            after = self._statement(node, known)
            if after is None:
                return None
            known = after
        return known

    def _statement(self, node: ast.stmt, known: set[str]) -> set[str] | None:
        if isinstance(node, ast.If):
            self._look(node.test, known)
            ways = [self.run(node.body, {*known}), self.run(node.orelse, {*known})]
            ends = [one for one in ways if one is not None]
            return set.intersection(*ends) if ends else None
        if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
            self._look(node.test if isinstance(node, ast.While) else node.iter, known)
            targets = () if isinstance(node, ast.While) else assigned_names([node.target])
            self.run(node.body, known | {*targets})
            self.run(node.orelse, {*known})
            return known
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for one in node.items:
                self._look(one, known)
            return self.run(node.body, known | {*assigned_names(node.items)})
        if isinstance(node, (ast.Try, ast.TryStar)):
            for part in (node.body, *(one.body for one in node.handlers), node.orelse, node.finalbody):
                self.run(part, known | {one.name for one in node.handlers if one.name})
            return known
        self._look(node, known)
        if isinstance(node, _ENDING):
            return None
        if isinstance(node, ast.Delete):
            return known - {*_assigned(node)}
        return known if isinstance(node, ast.Match) else known | {*_assigned(node)}

    def _look(self, node: ast.AST, known: set[str]) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self._own - known:
                is_changed = isinstance(node, ast.AugAssign) and part is node.target
                if isinstance(part.ctx, ast.Load) or is_changed:
                    self.found.add(part.id)
