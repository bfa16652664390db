"""Lines of generated source, and the objects they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from esat.base.quoting import remark
from esat.codegen.template import resolve


class Source:
    """Source text under construction.

    Attributes
    ----------
    environment
        The objects that the text names.

    Parameters
    ----------
    comments
        Whether comments are written.
    """

    def __init__(self, comments: bool) -> None:
        self.environment: dict[str, object] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._comments = comments

    def line(self, text: str, comment: str = "") -> None:
        """Add a line."""
        if comment and self._comments:
            text = f"{text}  # {remark(comment)}"
        self._lines.append("    " * self._depth + text)

    def remark(self, text: str) -> None:
        """Add a line of comment."""
        if self._comments:
            self._lines.append("    " * self._depth + f"# {remark(text)}")

    @contextmanager
    def block(self, header: str, comment: str = "") -> Iterator[None]:
        """Add a line that opens a block; what is added inside belongs to it."""
        self.line(f"{header}:", comment)
        self._depth += 1
        yield
        self._depth -= 1

    def use(self, name: str, value: object) -> str:
        """Let the text name an object; returns the name."""
        self.environment[name] = value
        return name

    def expression(self, template: str, dtype: str) -> str:
        """The text of a template for operands of ``dtype``, its names entered in the environment."""
        text, names = resolve(template, dtype)
        self.environment.update(names)
        return text

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines) + "\n"
