"""Records against the dataclasses of the same bodies."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from esat.base.records import record

Decorator = Callable[..., Callable[[type], type]]


def plain(decorated: Decorator, **options: bool) -> type:
    @decorated(frozen=True, **options)
    class Plain:
        """Two fields."""

        first: int
        second: str = "b"
        kind: ClassVar[str] = "no field"

    return Plain


def fields(decorated: Decorator, **options: bool) -> type:
    @decorated(frozen=True, **options)
    class Fields:
        first: int
        listed: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False)
        apart: int = field(default=4, compare=False)
        unhashed: int = field(default=4, hash=False)
        fixed: str = field(default="fixed", init=False)
        own: dict[str, int] = field(default_factory=dict, init=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "hidden", self.hidden + 1)

    return Fields


def derived(decorated: Decorator, **options: bool) -> type:
    @decorated(frozen=True, **options)
    class Derived(plain(decorated, **options)):
        second: str = "c"
        third: int = 5

    return Derived


def methods(decorated: Decorator, **options: bool) -> type:
    @decorated(frozen=True, **options)
    class Methods:  # noqa: PLW1641  what becomes of its hash is what is compared
        first: int
        second: int = 0

        def __init__(self, first: int) -> None:
            object.__setattr__(self, "first", first % 10)

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

    return Methods


BODIES = [plain, fields, derived, methods]
OPTIONS: list[dict[str, bool]] = [{}, {"slots": True}, {"eq": False}, {"repr": False, "slots": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("body", BODIES)
class TestAgainstDataclasses:
    def test_what_is_known_of_the_class(self, body: Any, options: dict[str, bool]) -> None:
        ours, theirs = body(record, **options), body(dataclass, **options)
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
        assert ours.__match_args__ == theirs.__match_args__
        assert [str(one) for one in dataclasses.fields(ours)] == [
            str(one) for one in dataclasses.fields(theirs)
        ]
        assert ("__dict__" in dir(ours(1))) == ("__dict__" in dir(theirs(1)))

    def test_values(self, body: Any, options: dict[str, bool]) -> None:
        ours, theirs = body(record, **options), body(dataclass, **options)
        for values in ((1,), (12,)):
            one, other = ours(*values), theirs(*values)
            assert [getattr(one, name, None) for name in ours.__match_args__] == [
                getattr(other, name, None) for name in theirs.__match_args__
            ]
            shown = [repr(value) for value in (one, other)]
            if options.get("repr", True) or body is methods:
                assert shown[0] == shown[1]
            else:
                assert " object at 0x" in shown[0]

    def test_equality_and_hashes(self, body: Any, options: dict[str, bool]) -> None:
        ours, theirs = body(record, **options), body(dataclass, **options)
        for left, right in ((1, 1), (1, 2)):
            assert (ours(left) == ours(right)) == (theirs(left) == theirs(right))
            assert (ours(left) == theirs(right)) == (theirs(left) == ours(right))
        assert outcome(lambda: hash(ours(1)) == hash(ours(1))) == outcome(
            lambda: hash(theirs(1)) == hash(theirs(1))
        )
        if body is plain and options.get("eq", True):
            assert hash(ours(1)) == hash(theirs(1))

    def test_errors(self, body: Any, options: dict[str, bool]) -> None:
        ours, theirs = body(record, **options), body(dataclass, **options)
        calls: list[Callable[[Any], Any]] = [
            lambda made: made(),
            lambda made: made(1, nothing=2),
            lambda made: made(*range(20)),
            lambda made: setattr(made(1), "first", 3),
            lambda made: delattr(made(1), "first"),
        ]
        for call in calls:
            assert outcome(lambda call=call: call(ours)) == outcome(lambda call=call: call(theirs))

    def test_replaced(self, body: Any, options: dict[str, bool]) -> None:
        def replaced(made: type) -> Any:
            return outcome(lambda: dataclasses.astuple(dataclasses.replace(made(1), first=7)))

        def copied(made: type) -> Any:
            return outcome(lambda: dataclasses.asdict(copy.copy(made(1))))

        ours, theirs = body(record, **options), body(dataclass, **options)
        assert replaced(ours) == replaced(theirs)
        assert copied(ours) == copied(theirs)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or its error."""
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@record(frozen=True, slots=True)
class Kept:
    """At the top of a module, where pickle finds it."""

    first: int
    second: tuple[int, ...] = (2,)


@record(frozen=True)
class Nested:
    inside: list[Any] = field(default_factory=list)


def test_records_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)
    assert pickle.loads(pickle.dumps(Nested([Kept(3)]))) == Nested([Kept(3)])


def test_a_record_may_hold_itself_and_what_has_no_truth_value() -> None:
    nested = Nested()
    nested.inside.append(nested)
    assert repr(nested) == "Nested(inside=[...])"
    array = np.arange(3)
    assert Nested(array) == Nested(array)  # type: ignore[arg-type]


def test_methods_are_written_once_and_only_when_they_are_called() -> None:
    made: Any = plain(record)
    later = vars(made)["__init__"]
    one = made(1)
    written = vars(made)["__init__"]
    assert later is not written
    assert made(1) == one
    assert vars(made)["__init__"] is written
    assert not inspect.isfunction(vars(made)["__repr__"])
    assert later.__get__(None, made)(made.__new__(made), 4) is None  # a thread that has found it may call it


def test_a_record_that_is_called_keeps_its_own_signature() -> None:
    """The parameters of a record are those of its class, not of its instances."""

    @record(frozen=True)
    class Function:
        arity: int

        def __call__(self, x: int) -> int:
            return self.arity * x

    assert list(inspect.signature(Function).parameters) == ["arity"]
    assert list(inspect.signature(Function(3)).parameters) == ["x"]
    assert "__signature__" not in vars(Function)


def test_a_subclass_that_is_no_record_has_a_signature_of_its_own() -> None:
    class Longer(plain(record)):  # type: ignore[misc]
        def __init__(self, only: int) -> None:
            super().__init__(only)

    assert list(inspect.signature(Longer).parameters) == ["only"]
    assert Longer(4).first == 4


@pytest.mark.parametrize("decorated", [record, dataclass])
def test_what_users_derive_from_a_record(decorated: Decorator) -> None:
    base: Any = plain(decorated)

    @dataclass(frozen=True)
    class Frozen(base):
        third: int = 3

    class Open(base):
        def __init__(self) -> None:
            super().__init__(1)
            self.other = 2

    assert (Frozen(1).third, Open().other) == (3, 2)
    assert Frozen(1) == Frozen(1)
    for made, name in ((Frozen(1), "third"), (Frozen(1), "first"), (Open(), "first")):
        with pytest.raises(FrozenInstanceError, match=name):
            setattr(made, name, 4)
        with pytest.raises(FrozenInstanceError, match=name):
            delattr(made, name)
    opened = Open()
    del opened.other
    assert not hasattr(opened, "other")
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):

        @dataclass
        class Changing(base):
            third: int = 3


def test_records_are_frozen() -> None:
    with pytest.raises(TypeError, match="frozen"):
        record(frozen=False)
    with pytest.raises(FrozenInstanceError, match="first"):
        Kept(1).first = 2  # type: ignore[misc]
