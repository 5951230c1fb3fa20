"""Every hook that a plugin may implement.

A plugin is a module or package with functions that are marked `@gateway.hookimpl`. Its distribution
names it in an entry point of the group `gateway`.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pluggy

from gateway.contracts import (
    Alarm,
    AuthorizationVerifier,
    PluginContext,
    Provider,
    Settler,
    TransferVerifier,
)
from gateway.contracts.parts import Part
from gateway.contracts.payment_methods import PaymentMethod
from gateway.domain import Capability, Endpoint
from gateway.settings import Settings
from gateway.telemetry.spans import OpenSpan

if TYPE_CHECKING:
    from gateway.running.gateway import Gateway

PROJECT = "gateway"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define settings of the plugin: call `register("acme", AcmeSettings)`, a frozen attrs class.

    Make its fields with `gateway.setting` and `gateway.secret`. Field `api_key` is read from the
    variable `GATEWAY_ACME_API_KEY`, or from `acme_api_key` in the file. The call
    `settings.section("acme", AcmeSettings)` returns the values. Give `switches_on=True` to a field
    without which the plugin sells nothing: `gateway plugins` names it while it is not set. In a
    class without such a field, `gateway plugins` names the secrets.

    The class may check its values in a method `validate(settings)`, which returns a mapping of
    fields to whether their values are valid, or raises `SettingsError`. Plugins of the gateway
    itself may use the prefix "".
    """


@hookspec
def register_capabilities(register: Callable[[Capability], None], settings: Settings) -> None:
    """Declare a kind of generation: call `register(capability)` once for each.

    Endpoints of any plugin may name it; `register_endpoints` is called afterwards. Validation, the
    402, documents, tools, pages and commands derive from the declaration. The gateway leaves out a
    plugin with a name that another plugin, or the gateway itself, declares.
    """


@hookspec
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Offer endpoints for sale: call `register(endpoint, provider)` once for each endpoint.

    `register` raises `ValueError` for an endpoint or a provider with a mistake. The gateway leaves
    out a plugin that raises, with all that it has registered before, and starts without it. It also
    leaves out a plugin with a slug that another plugin sells: bundled plugins come first, then the
    others by name. A `SettingsError` about a value that the operator has set stops the start.
    """


@hookspec
def reload_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Offer the endpoints again, as they are declared now: `gateway reload` calls this.

    Usually it is the same function: `reload_endpoints = register_endpoints`. The gateway calls it
    in a thread while it sells. An endpoint that is not registered any more goes off sale, and its
    paid tasks run; a 402 with an earlier price stays valid for its time. Return a provider that
    equals (`==`) the earlier one if it works in the same way: the gateway keeps that one, with its
    limits and its jobs. If the hook raises, or registers a mistake, all endpoints of the plugin
    stay as they were. Settings are those of the start.
    """


@hookspec
def register_authorization_verifier(
    register: Callable[[AuthorizationVerifier], None], context: PluginContext
) -> None:
    """Accept payments that the buyer signs and the gateway settles (the X402 flow).

    There may be several, side by side: a request's payment header chooses one by its name. Bundled
    plugins come first, then the others by name; the first verifier makes the 402, and every further
    one adds headers to it. The gateway leaves out a plugin whose verifier has a header that another
    plugin's has.
    """


@hookspec
def register_payment_method(
    register: Callable[[PaymentMethod], None], context: PluginContext
) -> None:
    """Accept payments with proofs of your own, such as prepaid vouchers: call `register(method)`.

    The core cannot read such a proof. It keeps its bytes and its claim, so nothing is used twice,
    and asks the method to take the money, again after a crash, until it knows whether it did.
    The gateway leaves out a plugin whose method has a header or a name that another plugin's has.
    """


@hookspec
def register_transfer_verifier(
    register: Callable[[TransferVerifier], None], context: PluginContext
) -> None:
    """Accept payments that are already on-chain (the direct flow): one per app.

    The gateway leaves out a second plugin that registers a verifier.
    """


@hookspec
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer ways to settle: call `register(name, factory)`; `GATEWAY_SETTLEMENT` names one of them.

    The gateway calls only the factory that is named; it may raise `SettingsError`. The gateway
    leaves out a plugin whose settler has a name that another plugin has taken.
    """


@hookspec
def register_parts(register: Callable[[Part], None], gateway: "Gateway") -> None:
    """Add parts to a gateway: routes, background work, checks, entries in documents.

    Called once at each start, with the database open, before the first request. Import little
    here: every start waits for it. The gateway leaves out the parts of a plugin that raises,
    and stops at a `SettingsError` about a value that the operator has set.
    """


@hookspec
def register_check_rows(
    register: Callable[[str, Callable[[], Awaitable[str]]], None], settings: Settings
) -> None:
    """Add rows to `gateway check`: call `register(name, check)`.

    `await check()` returns its finding as a sentence. It raises `SettingsError`, `ValueError` or
    `OSError` with a sentence about the problem.
    """


@hookspec
def register_spans(register: Callable[[OpenSpan], None], settings: Settings) -> None:
    """Trace requests and calls: call `register(open_span)` once.

    `open_span(name, about)` returns a context manager, which the gateway enters and exits around
    the work. `about` is a dict that is complete only at the exit. The spans are `request`
    (`method`, the beginning of the `path`, `status`, `request`), `attempt` (`task`, `slug`,
    `provider`, `payment`, `attempt`, `request`) and, inside of an attempt or a request, `call` of
    a provider (`provider`, `plugin`, and as `call` the method). `error` is the class of the error
    that ended the work. It contains no prompt, payer or key. An error of the plugin is logged, and
    the work goes on.
    """


@hookspec
def gateway_notify(alarm: Alarm) -> Awaitable[None] | None:
    """Send an alarm to the operator over a channel of the plugin; return once it is delivered.

    A plain function is called in a thread of its own, an `async` one on the gateway's loop. It has
    15 seconds. If it raises or takes longer, the gateway retries after 30 seconds, then after
    longer pauses until the alarm is a day old, so an alarm may arrive twice. Nothing else waits.
    """
