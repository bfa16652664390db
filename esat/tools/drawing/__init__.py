"""Pictures of graphs and compiled functions: SVG, graphviz's formats, and a page in one HTML file.

>>> import esat
>>> x, y = esat.matrix("x"), esat.vector("y")
>>> text = esat.pydotprint(esat.tanh(x @ y))
>>> text.startswith("<svg ")
True
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["pydotprint", "save_html"]


def pydotprint(
    graph: Any, outfile: str | os.PathLike[str] | None = None, format: str | None = None
) -> str | None:
    """Draw a graph: boxes for its nodes and leaves, arrows for what reads what.

    Inputs are green, shared variables turquoise, constants grey, outputs blue, library calls orange, views
    lilac, copies between host and device pink; the nodes of one kernel stand in a yellow frame. A dashed blue
    arrow leads to a result that shows the memory of what it reads, a red one to a result that is written over
    it. Numbers at arrows say which operand it is, where that matters.

    Parameters
    ----------
    graph
        A Variable, a sequence of them, a FunctionGraph, or a compiled function; of one that ``esat.jit``
        made, the program that was compiled last.
    outfile
        Where to write. Without it the text is returned, and the format is ``svg`` or ``dot``.
    format
        By default what the name of the file ends in, or ``svg``. ``svg`` and ``dot`` (a text for graphviz)
        need nothing; others, such as ``png`` and ``pdf``, need graphviz's program ``dot``.

    Raises
    ------
    EsatError
        For a format that cannot be written.

    Examples
    --------
    >>> import esat
    >>> esat.pydotprint(esat.exp(esat.vector("x")), format="dot").startswith("digraph")
    True
    """
    from esat.errors import EsatError
    from esat.tools.drawing.diagram import diagram_of
    from esat.tools.drawing.dot import dot_text, rendered
    from esat.tools.drawing.svg import svg_text

    chosen = format or (Path(outfile).suffix.lstrip(".") if outfile is not None else "") or "svg"
    diagram = diagram_of(graph)
    if chosen in ("svg", "dot"):
        text = svg_text(diagram) if chosen == "svg" else dot_text(diagram)
        if outfile is None:
            return text
        Path(outfile).write_text(text, encoding="utf-8")
        return None
    if outfile is None:
        raise EsatError(f"format {chosen!r} is no text; give it an outfile")
    Path(outfile).write_bytes(rendered(diagram, chosen))
    return None


def save_html(graph: Any, outfile: str | os.PathLike[str]) -> None:
    """Write a page about a compiled function: one file, which needs no network.

    It shows the graph as :func:`pydotprint` draws it, the steps of a call with their predicted times, and
    beside them what they took in calls after ``graph.measure()``, the source of the driver and of each
    kernel, the e-graph (its classes, the ways to compute each, their predicted times, which were chosen),
    what the optimizer did, and the profile. Of a graph that is not compiled it shows the picture alone.

    Parameters
    ----------
    graph
        A compiled function, or what :func:`pydotprint` takes.
    outfile
        Where to write.
    """
    from esat.tools.drawing.page import html_text

    Path(outfile).write_text(html_text(graph), encoding="utf-8")
