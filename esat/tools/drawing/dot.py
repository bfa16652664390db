"""Diagrams in the language of graphviz, for its layouts and its formats."""

from __future__ import annotations

import shutil
import subprocess

from esat.base.quoting import label
from esat.errors import EsatError
from esat.tools.drawing.diagram import Box, Diagram

_FILLS = {
    "input": "#c9efc4",
    "shared": "#c4ecef",
    "constant": "#eeeeee",
    "output": "#c6dcfa",
    "library": "#fde3c0",
    "view": "#f5f5ff",
    "transfer": "#f6cfe6",
    "size": "#fafafa",
    "apply": "#ffffff",
}
_ARROWS = {
    "read": 'color="#777788"',
    "view": 'color="#3f6fd0", style=dashed',
    "overwrite": 'color="#d03a2f", penwidth=1.6',
}


def dot_text(diagram: Diagram) -> str:
    """A diagram as a text that graphviz's ``dot`` reads."""
    lines = ["digraph esat {", '  node [shape=box, style=filled, fontname="monospace", fontsize=11];']
    inside = {key for cluster in diagram.clusters for key in cluster.members}
    for number, cluster in enumerate(diagram.clusters):
        lines.append(f'  subgraph cluster_{number} {{ label={label(cluster.label)}; bgcolor="#fff8db";')
        lines += [f"    {_box(diagram.boxes[key])}" for key in cluster.members]
        lines.append("  }")
    lines += [f"  {_box(box)}" for key, box in diagram.boxes.items() if key not in inside]
    for arrow in dict.fromkeys(diagram.arrows):
        mark = f", headlabel={label(arrow.mark)}" if arrow.mark else ""
        lines.append(f"  {arrow.tail} -> {arrow.head} [{_ARROWS[arrow.kind]}{mark}];")
    return "\n".join([*lines, "}"]) + "\n"


def rendered(diagram: Diagram, format: str) -> bytes:
    """A diagram in one of graphviz's formats, such as ``png`` or ``pdf``.

    Raises
    ------
    EsatError
        Where graphviz is not installed, or does not know the format.
    """
    program = shutil.which("dot")
    if program is None:
        raise EsatError(f"format {format!r} needs the program dot of graphviz; svg and dot need nothing")
    text = dot_text(diagram).encode()
    done = subprocess.run([program, f"-T{format}"], check=False, input=text, capture_output=True)
    if done.returncode:
        raise EsatError(f"dot could not write {format!r}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _box(box: Box) -> str:
    rounded = ', style="filled,rounded"' if box.kind in ("input", "shared", "constant", "output") else ""
    return f'{box.key} [label={label(chr(10).join(box.lines))}, fillcolor="{_FILLS[box.kind]}"{rounded}];'
