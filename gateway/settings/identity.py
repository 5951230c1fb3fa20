"""Settings of how the gateway presents itself to buyers and registries."""

import attrs

from gateway.settings.sections import setting


# Classes with slots cannot be bases of one class.
@attrs.frozen(kw_only=True, slots=False)
class IdentitySettings:
    """Settings of the gateway's name, contacts and proofs."""

    name: str = setting(
        "Generation Gateway",
        "Name that the agent manifest, llms.txt and the 402 show to buyers, and Bazaars list.",
    )
    created: str = setting(
        "2026-11-21", "Date (YYYY-MM-DD) of the first version of the agent manifest."
    )
    updated: str = setting(
        "",
        "Date (YYYY-MM-DD) on which the catalogue changed last. Empty: the date of "
        "GATEWAY_CREATED.",
    )
    contact_email: str = setting(
        "",
        "E-mail address that /openapi.json and the ERC-8004 file show. Registries such as x402scan "
        "write to it to verify that the gateway is yours.",
        example="operator@example.com",
    )
    ownership_proofs: tuple[str, ...] = setting(
        (),
        "Proofs, separated by commas, that show a registry that you own this address. "
        "/openapi.json publishes them. The registry gives them to you.",
        example="0x5f1c...",
    )
    agent_registrations: tuple[str, ...] = setting(
        (),
        "Registrations of this gateway in ERC-8004 identity registries, separated by commas: "
        "chain, registry and number of the agent. /.well-known/agent-registration.json shows them, "
        "so that readers of the chain know that this address is yours.",
        example="eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432/22",
    )
