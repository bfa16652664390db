"""Text forms of graphs: one-line expressions and the indented debugprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import IO, Any

from esat.graph.calls.arguments import stream_of
from esat.graph.identity import place_of
from esat.graph.variables import Apply, Variable


def expression_text(outputs: Sequence[Variable]) -> str:
    """The outputs as nested calls; a node used more than once is marked ``*1 -> ...`` where it
    stands first and ``*1`` afterwards."""
    uses: Counter[Apply] = Counter()
    for used in _nodes(outputs):
        uses.update(operand.owner for operand in used.inputs if operand.owner is not None)
    uses.update(output.owner for output in outputs if output.owner is not None)
    marks: dict[Apply, str] = {}

    # An explicit stack of text pieces and Variables, so that deep graphs print too.
    pieces: list[str] = []
    pending: list[str | Variable] = []
    for position, output in enumerate(reversed(outputs)):
        pending += [", ", output] if position else [output]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node = item.owner
        if node is None:
            pieces.append(str(item))
            continue
        suffix = f".{item.index}" if len(node.outputs) > 1 else ""
        if node in marks:
            pieces.append(marks[node] + suffix)
            continue
        if uses[node] > 1:
            marks[node] = f"*{len(marks) + 1}"
            pieces.append(f"{marks[node]} -> ")
        pieces.append(f"{node.op}(")
        pending.append(")" + suffix)
        for position, operand in enumerate(reversed(node.inputs)):
            pending += [", ", operand] if position else [operand]
    return "[" + "".join(pieces) + "]"


def _nodes(outputs: Iterable[Variable]) -> list[Apply]:
    seen: dict[Apply, None] = {}
    stack = [output.owner for output in outputs]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen[node] = None
        stack += [operand.owner for operand in node.inputs]
    return list(seen)


def debugprint(
    graph: Any, *, types: bool = True, clients: bool = False, file: IO[str] | str | None = None
) -> str | None:
    """Print a graph as an indented tree, one node a line.

    Parameters
    ----------
    graph
        A Variable, a sequence of them, a FunctionGraph, or a compiled function; of one that ``esat.jit``
        made, the program that was compiled last. ``v={0: (1,)}`` behind a node says that its result 0 shows
        the memory of its input 1, and ``d={0: (1,)}`` that it is written over it; ``@device`` that it runs
        on the device. Nodes ``to device`` and ``to host`` copy.
    types
        Whether to show each node's type.
    clients
        Whether to show how often each node is used (in a FunctionGraph).
    file
        Where to print, by default standard output; ``"str"`` returns the text instead.

    Examples
    --------
    >>> import esat
    >>> x = esat.vector("x")
    >>> esat.debugprint(esat.exp(x) + x, types=False)
    add
     ├─ exp
     │   └─ x
     └─ x
    """
    graph = program_of(graph)
    lines: list[str] = []
    marks: dict[Apply, str] = {}
    outputs = outputs_of(graph)
    shared = _shared_nodes(outputs)
    overwrites: Mapping[Variable, Variable] = getattr(graph, "overwrites", {})
    there = {node for step in getattr(graph, "steps", ()) if step.side == "device" for node in step.nodes}
    for output in outputs:
        _print_tree(output, lines, marks, shared, types, clients, overwrites, there)
    text = "\n".join(lines)
    if file == "str":
        return text
    print(text, file=stream_of("debugprint", None if isinstance(file, str) else file))
    return None


def program_of(graph: Any) -> Any:
    """What is to be shown of a graph: of a function of arrays, the program that was compiled last."""
    return getattr(graph, "latest", graph)


def outputs_of(graph: Any) -> list[Variable]:
    """The output Variables of anything that can be printed as a graph."""
    if isinstance(graph, Variable):
        return [graph]
    if hasattr(graph, "outputs"):
        return list(graph.outputs)
    if hasattr(graph, "graph"):
        return outputs_of(graph.graph)
    return [variable for item in graph for variable in outputs_of(item)]


def _shared_nodes(outputs: Sequence[Variable]) -> set[Apply]:
    uses = Counter(operand.owner for node in _nodes(outputs) for operand in node.inputs)
    uses.update(output.owner for output in outputs)
    return {node for node, count in uses.items() if node is not None and count > 1}


def _print_tree(
    root: Variable,
    lines: list[str],
    marks: dict[Apply, str],
    shared: set[Apply],
    types: bool,
    clients: bool,
    overwrites: Mapping[Variable, Variable],
    there: AbstractSet[Apply],
) -> None:
    pending: list[tuple[Variable, str, str]] = [(root, "", "")]
    while pending:
        variable, lead, below = pending.pop()
        node = variable.owner
        if node is None:
            lines.append(lead + _leaf_text(variable, types))
            continue
        suffix = f".{variable.index}" if len(node.outputs) > 1 else ""
        if node in marks:
            lines.append(f"{lead}{marks[node]}{suffix}")
            continue
        text = f"{node.op}{suffix}"
        if node in shared:
            marks[node] = f"*{len(marks) + 1}"
            text = f"{marks[node]} -> {text}"
        text += _effect_text(node, overwrites)
        text += " @device" if node in there else ""
        if types:
            text += f" <{variable.type}>"
        if variable.name:
            text += f" '{variable.name}'"
        if clients and variable.clients is not None:
            text += f" clients:{len(variable.clients)}"
        lines.append(lead + text)
        last = len(node.inputs) - 1
        for position in range(last, -1, -1):
            corner, rule = (" └─ ", "    ") if position == last else (" ├─ ", " │  ")
            pending.append((node.inputs[position], below + corner, below + rule))


def _effect_text(node: Apply, overwrites: Mapping[Variable, Variable]) -> str:
    """Marks of what a node's results show and are written over, by position of the input, or by name
    where a kernel overwrites what another of its nodes reads."""
    text = f" v={dict(node.op.view_map)}" if node.op.view_map else ""
    destroyed = dict(node.op.destroy_map)
    named: dict[int, str] = {}
    for place, output in enumerate(node.outputs):
        old = overwrites.get(output)
        if old is None or place in destroyed:
            continue
        read = place_of(old, node.inputs)
        if read is not None:
            destroyed[place] = (read,)
        else:
            named[place] = str(old)
    if destroyed or named:
        pairs = [f"{place}: {what}" for place, what in sorted({**destroyed, **named}.items())]
        text += f" d={{{', '.join(pairs)}}}"
    return text


def _leaf_text(variable: Variable, types: bool) -> str:
    return f"{variable} <{variable.type}>" if types else str(variable)
