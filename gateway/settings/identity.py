"""Settings of how the gateway presents itself to buyers and registries."""

import attrs

from gateway.settings.sections import setting


# Classes with slots cannot be bases of one class.
@attrs.frozen(kw_only=True, slots=False)
class IdentitySettings:
    """Settings of the gateway's name, contacts and proofs."""

    name: str = setting(
        "Generation Gateway",
        "Name for buyers: in the agent manifest, llms.txt, the 402 and Bazaars.",
    )
    created: str = setting("2026-11-21", "Date (YYYY-MM-DD) of the first agent manifest.")
    updated: str = setting(
        "",
        "Date (YYYY-MM-DD) of the catalogue's last change. Empty: GATEWAY_CREATED.",
    )
    contact_email: str = setting(
        "",
        "E-mail address in /openapi.json and the ERC-8004 file. Registries such as x402scan verify "
        "ownership by it.",
        example="operator@example.com",
    )
    ownership_proofs: tuple[str, ...] = setting(
        (),
        "A registry's proofs of your ownership, separated by commas, for /openapi.json.",
        example="0x5f1c...",
    )
    agent_registrations: tuple[str, ...] = setting(
        (),
        "Registrations in ERC-8004 identity registries, separated by commas (chain, registry, "
        "agent's number), for /.well-known/agent-registration.json.",
        example="eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432/22",
    )
