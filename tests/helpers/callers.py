"""The same function called by several Python threads at once."""

import threading
from collections.abc import Callable


def call_at_once(function: Callable[[], None], count: int) -> None:
    """Fail unless ``function`` returns within a minute in each of ``count`` threads, without an error."""
    failures: list[BaseException] = []

    def call() -> None:
        try:
            function()
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=call) for _ in range(count)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60.0)
        assert not caller.is_alive()
    assert not failures, failures
