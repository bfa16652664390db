"""Values in texts that only a call can know: errors show them, and printing shows what stands for them."""

from __future__ import annotations

from typing import Any

from esat.frontend.tracing.trace import current_trace, not_known
from esat.graph.variables import Variable


def written(variable: Variable, spec: str, shown: str) -> str:
    """What stands in texts for a value that only a call can know: errors show the value."""
    trace = current_trace()
    if trace is None or trace.path is None:
        return shown
    path = trace.path
    text = f"<value {len(path.written)} of {trace.name}>"
    path.texts[text], path.written[text] = (variable, spec), variable
    return text


def require_known_text(value: Any) -> None:
    """Raise TracingError for a text with a value in it that only a call can know.

    Asked where more is done with a text than to print or raise it.
    """
    trace = current_trace()
    if type(value) is str and trace is not None and trace.path is not None:
        for text, variable in trace.path.written.items():
            if text in value:
                raise not_known(variable, "str", "texts with values in them can be printed and raised only")
