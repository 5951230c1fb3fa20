"""Many inputs on one gateway, for tests that change nothing: a start costs more than a request."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

Test = Callable[..., Awaitable[None]]


def each(names: str, values: Iterable[Any] | Mapping[str, Any]) -> Callable[[Test], Test]:
    """Run a test with each of the values, like `parametrize`, but with the same fixtures.

    The keys of a mapping identify failing values. Every value is tried.
    """
    given = [name.strip() for name in names.split(",")]
    cases = values.items() if isinstance(values, Mapping) else ((_label(v), v) for v in values)
    chosen = [(label, (value,) if len(given) == 1 else tuple(value)) for label, value in cases]

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        kept = [one for one in signature.parameters.values() if one.name not in given]
        takes_subtests = any(one.name == "subtests" for one in kept)
        if not takes_subtests:
            kept.append(inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(test)
        async def run(*, subtests: Any, **fixtures: Any) -> None:
            more = {"subtests": subtests} if takes_subtests else {}
            for label, value in chosen:
                with subtests.test(label):
                    await test(**fixtures, **more, **dict(zip(given, value, strict=True)))

        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate


def _label(value: Any) -> str:
    return repr(value)[:60]
