"""Payment by x402 `exact` on EVM, v1 and v2: challenges and signed EIP-3009 authorizations."""

from collections.abc import Callable

from gateway import AuthorizationVerifier, PluginContext, hookimpl
from gateway_x402.verifier import X402Verifier


@hookimpl
def register_authorization_verifier(
    register: Callable[[AuthorizationVerifier], None], context: PluginContext
) -> None:
    """Offer the x402 flow on the configured network."""
    settings = context.settings
    register(
        X402Verifier(settings.chain, context.chain, settings.erc6492_factories, name=settings.name)
    )
