"""Reloads: plugins offer their endpoints again while the gateway runs."""

import asyncio
import time
from collections.abc import Callable, Sequence

import attrs
import structlog

from gateway.catalog.catalog import Catalog
from gateway.catalog.health import probe_new
from gateway.catalog.upstream import Upstream
from gateway.concurrency.threads import DaemonThread
from gateway.contracts import Provider
from gateway.contracts.parts import Condition
from gateway.domain import Endpoint
from gateway.errors import SettingsError, text_of

# Plugins read small files, so they have this long, all together.
_OFFER_S = 30.0
_MAX_PROBLEM_CHARS = 300
_log = structlog.get_logger()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class OfferedAgain:
    """The present endpoints of one plugin, or why it could not name them."""

    plugin: str
    offers: Sequence[tuple[Endpoint, Provider]] = ()
    problem: Exception | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Reloaded:
    """The outcome of a reload, as sentences for the operator."""

    sentences: Sequence[str]
    # Whether every plugin's endpoints are the present ones.
    is_whole: bool


@attrs.define(eq=False, repr=False)
class Reloads:
    """Reloads the endpoints of the plugins that can offer them again."""

    catalog: Catalog
    # Calls the plugins' hooks, in a thread.
    offer_again: Callable[[], Sequence[OfferedAgain]]
    # Returns a text without secrets.
    clean: Callable[[str], str] = str
    offer_s: float = _OFFER_S
    # Called at once when endpoints have been replaced.
    on_replaced: Callable[[], None] = lambda: None
    # By plugin, of the last reload.
    _problems: dict[str, str] = attrs.field(factory=dict, init=False)
    # One at a time.
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def run(self) -> Reloaded:
        """Replace the endpoints of each plugin; one that fails keeps its own."""
        async with self._turn:
            before = {id(one) for one in self.catalog.upstreams()}
            found = await self._ask()
            self._problems, changes = {}, []
            for one in found:
                changes += self._replace(one)
            new = [one for one in self.catalog.upstreams() if id(one) not in before]
            await asyncio.gather(*map(probe_new, new), self._close_unused(found))
            sentences = [*(changes or ["Nothing has changed."]), *self._find_lost_tables()]
            return Reloaded(sentences=sentences, is_whole=not self._problems)

    def _find_lost_tables(self) -> list[str]:
        return [
            f"The next start will fail: [endpoints.{slug}] in gateway.toml names no endpoint any "
            "more. Remove the table."
            for slug in self.catalog.lost_overrides()
        ]

    async def _ask(self) -> Sequence[OfferedAgain]:
        """Call the plugins' hooks in a thread, for which the end of the process does not wait."""
        thread = DaemonThread("reload")
        try:
            async with asyncio.timeout(self.offer_s):
                return await asyncio.get_running_loop().run_in_executor(thread, self.offer_again)
        except TimeoutError:
            problem = SettingsError(f"a plugin did not return within {self.offer_s:g} seconds")
            return [OfferedAgain(plugin="The gateway", problem=problem)]
        finally:
            thread.shutdown(wait=False)

    def _replace(self, one: OfferedAgain) -> list[str]:
        """Return a sentence about one plugin, or none if nothing has changed."""
        if one.problem is not None:
            return [self._note_problem(one.plugin, one.problem)]
        try:
            replaced = self.catalog.replace(one.plugin, one.offers)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            return [self._note_problem(one.plugin, error)]
        self.on_replaced()
        if not str(replaced):
            return []
        _log.info(
            "catalog.reloaded",
            plugin=one.plugin,
            added=replaced.added,
            removed=replaced.removed,
            changed=replaced.changed,
        )
        return [f"{one.plugin}: {replaced}."]

    def _note_problem(self, plugin: str, error: Exception) -> str:
        kind = "" if isinstance(error, SettingsError) else f"{type(error).__name__}: "
        problem = self.clean(" ".join(f"{kind}{text_of(error)}".split()))[:_MAX_PROBLEM_CHARS]
        self._problems[plugin] = problem
        _log.error("catalog.not_reloaded", plugin=plugin, error=problem)
        return f"{plugin} keeps its endpoints as they were: {problem}"

    async def _close_unused(self, found: Sequence[OfferedAgain]) -> None:
        """Close providers that equal earlier ones, or that came with a mistake."""
        used = {id(one.provider) for one in (*self.catalog.upstreams(), *self.catalog.withdrawn)}
        offered = {id(one): (one, each.plugin) for each in found for _, one in each.offers}
        for provider, plugin in (pair for key, pair in offered.items() if key not in used):
            await Upstream.of(provider, plugin, now=time.time, slots=1).close()

    async def find_conditions(self) -> list[Condition]:
        """Return a condition for each plugin whose last reload failed, and for the next start."""
        lost = [
            Condition(
                name="reload_failed",
                subject="gateway.toml",
                level="warn",
                title="The next start will fail",
                text=sentence,
                action="Remove the table, or put the file back and run `gateway reload`.",
            )
            for sentence in self._find_lost_tables()[:1]
        ]
        return lost + [
            Condition(
                name="reload_failed",
                subject=plugin,
                level="warn",
                title=f"{plugin} keeps its endpoints as they were",
                text=f"The last reload changed nothing of it: {problem}",
                action="Correct the mistake, then run `gateway reload`.",
            )
            for plugin, problem in self._problems.items()
        ]
