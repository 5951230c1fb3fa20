"""Loads the plugins of the entry-point group `gateway`, and those passed by tests.

A third party's plugin is left out, with one log line, if it cannot be imported, fails in a hook,
registers something invalid, or registers the same as another plugin. Everything else starts.
Bundled plugins come first, then third parties' plugins by name. A wrong setting of the operator
stops the start with a `SettingsError`.
"""

import importlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs
import pluggy
import structlog

from gateway.catalog.catalog import Catalog
from gateway.catalog.upstream import place_in
from gateway.contracts import (
    Alarm,
    AuthorizationVerifier,
    Clock,
    PluginContext,
    Settler,
    TransferVerifier,
)
from gateway.contracts.parts import Part
from gateway.contracts.payment_methods import PaymentMethod
from gateway.errors import SettingsError, text_of
from gateway.installed import entry_points
from gateway.plugins import hookspecs
from gateway.plugins.capability_offers import capability_offer
from gateway.plugins.installed import BUNDLED, find_disabled
from gateway.plugins.loaded import Hooks, LoadedPlugin
from gateway.plugins.page_values import hold_unread, refuse_off_page
from gateway.plugins.part_offers import claims_of_part, part_offer
from gateway.plugins.registration import (
    Offer,
    Offers,
    RegistrationMistake,
    check_offer,
    claims_of_section,
    claims_of_way,
    endpoint_offer,
    find_taken,
    is_x402,
    method_offer,
    refuse_without_x402,
    section_offer,
    settler_offer,
    signed_offer,
    span_offer,
    transfer_offer,
)
from gateway.plugins.unknown_settings import (
    blame_settings,
    refuse_unknown_settings,
    warn_of_disabled,
    warn_of_unknown_settings,
)
from gateway.settings import SectionOffer, Settings
from gateway.telemetry.redaction import Redactor, secrets_of
from gateway.telemetry.spans import OpenSpan, Spans

if TYPE_CHECKING:
    from gateway.running.gateway import Gateway

GROUP = "gateway"
BUNDLED_SOURCE = "bundled"
GIVEN_SOURCE = "given to create_app"
_OURS = (BUNDLED_SOURCE, GIVEN_SOURCE)
_MAX_PROBLEM_CHARS = 300
_Transfers = list[tuple[LoadedPlugin, TransferVerifier]]
_log = structlog.get_logger()


class PluginManager:
    """One per app: calls every plugin's hooks in the order of registration."""

    def __init__(self, plugins: Iterable[object] = (), *, disabled: Iterable[str] = ()) -> None:
        """Load every plugin but the `disabled` ones.

        Raises `SettingsError` if `disabled` has a name that no plugin has.
        """
        self._manager = Hooks(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: dict[str, LoadedPlugin] = {}
        # None before `catalog`.
        self._catalog: Catalog | None = None
        self._spans = Spans()
        # By plugin.
        self._openers: dict[str, list[OpenSpan]] = {}
        self._transfers: _Transfers | None = None
        # The plugin whose settler is in use.
        self._settling = ""
        found = {entry.value: entry for entry in entry_points(group=GROUP)}
        modules = dict.fromkeys((*BUNDLED, *sorted(found)))
        self._disabled = find_disabled(disabled, modules)
        for module in modules:
            self._load(module, found.get(module))
        for plugin in plugins:
            name = getattr(plugin, "__name__", type(plugin).__name__)
            module = name if isinstance(plugin, ModuleType) else type(plugin).__module__
            self._plugins[name] = LoadedPlugin(name=name, source=GIVEN_SOURCE, module=module)
            self._register(name, plugin)

    @property
    def loaded(self) -> list[LoadedPlugin]:
        """Every plugin, including those that were left out."""
        return list(self._plugins.values())

    def modules(self) -> dict[str, str]:
        """Map each plugin's module to the plugin's name."""
        return {plugin.module: plugin.name for plugin in self.loaded}

    @property
    def _lacks_plugins(self) -> bool:
        """Whether a plugin was left out, wholly or in part, or is disabled."""
        return any(plugin.problem or plugin.is_disabled for plugin in self.loaded)

    def _load(self, name: str, entry: EntryPoint | None) -> None:
        """Import one plugin, unless it is disabled; leave it out if that fails."""
        source = BUNDLED_SOURCE
        if name not in BUNDLED and entry is not None and entry.dist is not None:
            source = f"{entry.dist.name} {entry.dist.version}"
        module = name.partition(":")[0].strip()
        is_disabled = name in self._disabled
        self._plugins[name] = LoadedPlugin(
            name=name, source=source, module=module, is_disabled=is_disabled
        )
        if is_disabled:
            return
        try:
            plugin = entry.load() if entry is not None else importlib.import_module(module)
            self._register(name, plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            self._leave_out(name, error)

    def _register(self, name: str, plugin: object) -> None:
        """Register a plugin's hooks; raises `ValueError` as `Hooks.add` does."""
        hooks = self._manager.add(plugin, name)
        self._plugins[name] = attrs.evolve(self._plugins[name], hooks=hooks)

    def _leave_out(self, name: str, error: BaseException, *, sells_on: bool = False) -> None:
        """Continue without a third party's plugin; raise the error of any other plugin.

        All that it has registered is taken back. With `sells_on`, only its registrations by the
        current hook are. Raises `SettingsError` if its settler is in use.
        """
        plugin = self._plugins[name]
        if plugin.source in _OURS:
            raise error
        if not sells_on:
            self._take_back(name)
        kind = "" if isinstance(error, SettingsError) else f"{type(error).__name__}: "
        problem = " ".join(f"{kind}{text_of(error)}".split())[:_MAX_PROBLEM_CHARS]
        self._plugins[name] = attrs.evolve(plugin, problem=problem)
        place = place_in(error, plugin.module)
        _log.error("plugin.left_out", plugin=name, source=plugin.source, error=problem, at=place)
        if name == self._settling and not sells_on:
            raise SettingsError(
                f"GATEWAY_SETTLEMENT names a settler of {plugin.full_name}, which fails: {problem}"
            )

    def _take_back(self, name: str) -> None:
        """Remove all that a plugin has registered; a later list is made without its hooks."""
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)
        if self._catalog is not None:
            self._catalog.withdraw(name)
        self._spans.remove(self._openers.pop(name, ()))

    def _is_left_out(self, plugin: LoadedPlugin) -> bool:
        return not self._manager.has_plugin(plugin.name)

    def implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Return the implementations of a hook. Pluggy's order would follow the plugins' wishes."""
        order = list(self._plugins)
        found = getattr(self._manager.hook, hook).get_hookimpls()
        return sorted(found, key=lambda one: order.index(one.plugin_name))

    def _call_hook(
        self, hook: str, offer: Offer, **arguments: Any
    ) -> Iterator[tuple[LoadedPlugin, dict[str, Any]]]:
        """Call a hook of each plugin and yield its registrations; leave out a plugin that fails.

        `offer` takes the arguments of a plugin's call of `register` and returns them with a name
        that the plugin may use once. It raises for invalid arguments.
        """
        context = arguments.get("context")
        settings = context.settings if context is not None else arguments.get("settings")
        for implementation in self.implementations(hook):
            name, offers = implementation.plugin_name, Offers(offer)
            given = {"register": offers.register, **arguments}
            try:
                implementation.function(*(given[each] for each in implementation.argnames))
            except (Exception, SystemExit) as error:
                if isinstance(error, SettingsError) and self._is_operators_mistake(name, settings):
                    raise
                if isinstance(error, RegistrationMistake) and settings is not None:
                    error = blame_settings(error, self._sections_of(name), settings)
                self._leave_out(name, error, sells_on=hook == "register_parts")
                continue
            yield self._plugins[name], offers.taken

    def _take_once(
        self,
        hook: str,
        offer: Offer,
        claims_of: Callable[[str, Any], Iterable[str]],
        taken: dict[str, LoadedPlugin] | None = None,
        **arguments: Any,
    ) -> Iterator[tuple[LoadedPlugin, Any]]:
        """Yield the offers through a hook; leave out a plugin that claims what another has.

        `claims_of` takes an offer's name and the offer. `taken` has the claims of other hooks.
        """
        taken = {} if taken is None else taken
        for plugin, offers in self._call_hook(hook, offer, **arguments):
            for claim in [one for one, owner in taken.items() if self._is_left_out(owner)]:
                del taken[claim]
            claims = [claim for named in offers.items() for claim in claims_of(*named)]
            for claim in claims:
                if (other := find_taken(claim, taken)) is not None:
                    error = SettingsError(
                        f"{claim} is registered by {taken[other].full_name} and by "
                        f"{plugin.full_name}. Uninstall one of the two."
                    )
                    self._leave_out(plugin.name, error, sells_on=hook == "register_parts")
                    break
            else:
                taken |= dict.fromkeys(claims, plugin)
                yield from ((plugin, offered) for offered in offers.values())

    def _is_operators_mistake(self, name: str, settings: Settings | None) -> bool:
        """Whether a plugin's `SettingsError` is about a value that the operator has set."""
        if settings is None or self._plugins[name].source in _OURS:
            return True
        mine = self._sections_of(name)
        return any(settings.plugin_values.keys() & section.fields.keys() for section in mine)

    def _sections_of(self, name: str) -> list[SectionOffer]:
        return [section for section in self.sections() if section.plugin == name]

    def sections(self) -> list[SectionOffer]:
        """Return the plugins' own settings.

        Of two plugins with the same setting, the second is left out: it could read the other's
        secret.
        """
        found: list[SectionOffer] = []
        taken: dict[str, LoadedPlugin] = {}
        for plugin, offers in self._call_hook("register_settings", section_offer):
            sections = [SectionOffer(plugin.name, *offer) for offer in offers.values()]
            claims = [claim for section in sections for claim in claims_of_section(section)]
            clash = next((claim for claim in claims if claim in taken), None)
            if "" in offers and plugin.source != BUNDLED_SOURCE:
                problem = "Only plugins of the gateway itself have settings without a prefix"
            elif clash is not None:
                both = f"{taken[clash].full_name} and {plugin.full_name}"
                problem = f"Both {both} have {clash}. Uninstall one of the two."
            else:
                taken |= dict.fromkeys(claims, plugin)
                found += sections
                continue
            self._leave_out(plugin.name, SettingsError(problem))
        return found

    def _check_values(self, settings: Settings) -> None:
        """Raise `SettingsError` for a wrong value, and for a setting that no plugin defines.

        If a plugin was left out or disabled, only warn: the setting may be its own.
        """
        sections = self.sections()
        refuse_off_page(settings, sections)
        for section in sections:
            if self._plugins[section.plugin].source == BUNDLED_SOURCE:
                settings.section(section.prefix, section.kind)
        known = {name for section in sections for name in section.fields}
        known |= warn_of_disabled(self.loaded, settings)
        if self._lacks_plugins:
            warn_of_unknown_settings(settings, known)
        else:
            refuse_unknown_settings(settings, known)

    def catalog(
        self, settings: Settings, now: Clock = time.time, redactor: Redactor | None = None
    ) -> Catalog:
        """Return the plugins' endpoints; `redactor` learns their secrets.

        Raises `SettingsError` for a wrong setting.
        """
        self._check_values(settings)
        redactor = redactor or Redactor()
        redactor.add_secrets(secrets_of(settings, self.sections(), are_all=True))
        self._catalog = catalog = Catalog(
            settings.endpoints, now=now, slots=settings.workers, redactor=redactor
        )
        declare = partial(capability_offer, catalog.media_types)
        hook, claims = "register_capabilities", lambda name, _: (f"Capability {name}",)
        for plugin, capability in self._take_once(hook, declare, claims, settings=settings):
            catalog.declare(capability, plugin.name)
        offer = partial(endpoint_offer, capabilities=catalog.capabilities)
        hook, claims = "register_endpoints", lambda slug, _: (f"Slug {slug}",)
        found = self._take_once(hook, offer, claims, settings=settings)
        for plugin, (endpoint, provider) in found:
            catalog.register(endpoint, provider, plugin.name)
        hold_unread(catalog, settings, self.sections())
        # A table of an unknown endpoint may be for a plugin that was left out or disabled.
        if not self._lacks_plugins:
            catalog.check_overrides()
        return catalog

    def ways_to_pay(
        self, context: PluginContext
    ) -> tuple[list[AuthorizationVerifier], list[PaymentMethod]]:
        """Return the verifiers of signed payments, x402's first, and the payment methods.

        Otherwise they are in the order of their plugins. Raises `SettingsError` without x402's: its
        header is in every document for buyers.
        """
        taken: dict[str, LoadedPlugin] = {}
        hook = "register_authorization_verifier"
        signed = list(self._take_once(hook, signed_offer, claims_of_way, taken, context=context))
        hook = "register_payment_method"
        offered = list(self._take_once(hook, method_offer, claims_of_way, taken, context=context))
        self._transfers = self._call_for_transfers(context)
        # A later hook may have left out a plugin of an earlier one.
        methods = [method for plugin, method in offered if not self._is_left_out(plugin)]
        verifiers = [way for plugin, way in signed if not self._is_left_out(plugin)]
        refuse_without_x402(verifiers)
        return sorted(verifiers, key=is_x402, reverse=True), methods

    def transfer_verifier(self, context: PluginContext) -> TransferVerifier:
        """Return the first plugin's verifier of the direct flow; leave out the other plugins."""
        if self._transfers is None:
            self._transfers = self._call_for_transfers(context)
        verifiers = [one for plugin, one in self._transfers if not self._is_left_out(plugin)]
        if not verifiers:
            raise SettingsError(
                "No plugin implements register_transfer_verifier. `gateway plugins` lists them."
            )
        return verifiers[0]

    def _call_for_transfers(self, context: PluginContext) -> _Transfers:
        hook = "register_transfer_verifier"
        found = self._take_once(hook, transfer_offer, lambda *_: (f"Hook {hook}",), context=context)
        return list(found)

    def parts(self, gateway: "Gateway") -> list[Part]:
        """Return the parts that plugins add to a gateway, in the plugins' order.

        The parts of a plugin that fails here are left out; its endpoints stay on sale.
        """
        found = self._take_once(
            "register_parts",
            partial(part_offer, {part.name for part in gateway.lifecycle.parts}),
            claims_of_part,
            gateway=gateway,
            settings=gateway.settings,
        )
        return [
            attrs.evolve(part, plugin=plugin.name, is_optional=plugin.source not in _OURS)
            for plugin, part in found
        ]

    def check_rows(self, settings: Settings) -> dict[str, Callable[[], Awaitable[str]]]:
        """Return the plugins' rows of `gateway check` by name."""
        found = self._call_hook("register_check_rows", check_offer, settings=settings)
        return {name: check for _, offers in found for name, check in offers.items()}

    def spans(self, settings: Settings) -> Spans:
        """Return the plugins' openers of spans."""
        found = self._call_hook("register_spans", span_offer, settings=settings)
        self._openers = {plugin.name: list(offers.values()) for plugin, offers in found}
        self._spans = Spans(tuple(one for mine in self._openers.values() for one in mine))
        return self._spans

    def notifiers(self) -> dict[str, Callable[[Alarm], Any]]:
        """Return the functions that deliver alarms, by the names of their plugins."""
        found = self._manager.hook.gateway_notify.get_hookimpls()
        return dict(sorted((one.plugin_name, one.function) for one in found))

    def settler(self, context: PluginContext) -> Settler:
        """Return the settler that `GATEWAY_SETTLEMENT` names."""
        hook, claims = "register_settlers", lambda name, _: (f"Settler {name}",)
        found = list(self._take_once(hook, settler_offer, claims, context=context))
        kept = (one for one in found if not self._is_left_out(one[0]))
        offered = {name: (plugin, factory) for plugin, (name, factory) in kept}
        if (name := context.settings.settlement) not in offered:
            raise SettingsError(
                f"GATEWAY_SETTLEMENT is {name!r}, but must be one of {', '.join(sorted(offered))}."
            )
        self._settling = offered[name][0].name
        made: Settler = offered[name][1]()
        return made
