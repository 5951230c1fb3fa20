"""Payment by the Machine Payments Protocol: HTTP scheme `Payment`, method `evm`, one charge.

A buyer signs the same EIP-3009 authorization as in x402; challenge and credential differ.
`GATEWAY_MPP_ENABLED` turns it on.
"""

from collections.abc import Callable

import attrs

from gateway import AuthorizationVerifier, PluginContext, hookimpl, setting


@attrs.frozen(kw_only=True)
class MppSettings:
    """The operator's settings for the Machine Payments Protocol."""

    enabled: bool = setting(
        default=False,
        about="Whether buyers may also pay by the [Machine Payments Protocol](mpp.md).",
        switches_on=True,
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the plugin's settings."""
    register("mpp", MppSettings)


@hookimpl
def register_authorization_verifier(
    register: Callable[[AuthorizationVerifier], None], context: PluginContext
) -> None:
    """Offer the protocol on the configured network, if the operator wants it."""
    if not context.settings.section("mpp", MppSettings).enabled:
        return
    # Most gateways do not need it.
    from gateway_mpp.verifier import MppVerifier  # noqa: PLC0415

    register(MppVerifier(context))
