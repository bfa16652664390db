"""Profiles as files: records of what was measured, each entry a positive number, as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from esat.base.storage import write_whole
from esat.errors import ParameterError


class StoredProfile:
    """A record of numbers, of several in a tuple, and of records of these; all have defaults.

    Attributes
    ----------
    kind
        What it is a profile of, for errors.
    version
        Version of the stored form; a profile of another version is not read.
    """

    __slots__ = ()
    kind: ClassVar[str]
    version: ClassVar[int]

    def to_json(self) -> str:
        """The profile as text."""
        entries: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return json.dumps({"format": self.version, **entries}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The profile that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            For text of another kind, a missing or unknown entry, a value that is not positive and finite.
        """
        try:
            entries = json.loads(text)
        except ValueError as error:
            raise ParameterError(f"a {cls.kind} profile is JSON; this is not: {error}") from None
        if not isinstance(entries, dict) or entries.pop("format", None) != cls.version:
            raise ParameterError(f"a {cls.kind} profile of format {cls.version} is needed")
        found: Self = cls._like(cls(), entries, "record")
        return found

    @classmethod
    def _like(cls, default: Any, value: object, name: str) -> Any:
        """A stored value as what stands in its place in the profile by default."""
        if isinstance(default, float) and isinstance(value, int | float) and not isinstance(value, bool):
            if 0.0 < value < math.inf:
                return float(value)
        elif isinstance(default, tuple) and isinstance(value, list) and len(value) == len(default):
            return tuple(cls._like(*pair, name) for pair in zip(default, value, strict=True))
        elif not isinstance(default, float | tuple) and isinstance(value, dict):
            known = {field.name: getattr(default, field.name) for field in fields(default)}
            if value.keys() == known.keys():
                return type(default)(**{key: cls._like(known[key], value[key], key) for key in known})
            wrong = ", ".join(sorted(value.keys() ^ known.keys()))
            reason = f"has other entries than these: {wrong} missing or unknown"
            raise ParameterError(f"a {cls.kind} profile {reason}")
        raise ParameterError(f"the {cls.kind} profile's {name} is {value!r}")

    @classmethod
    def stored(cls, path: Path) -> Self:
        """The profile in a file; the shipped one where there is none that can be read."""
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ParameterError):
            return cls()

    def store(self, path: Path) -> Path:
        """Keep it in a file; what reads that meanwhile sees the old profile or the new one.

        Raises
        ------
        OSError
            When it cannot be written.
        """
        write_whole(path, self.to_json())
        return path
