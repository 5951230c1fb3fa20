"""Settings of how the gateway presents itself: to buyers, to registries and on its pages."""

import attrs

from gateway.settings.sections import setting


# Classes with slots cannot be bases of one class.
@attrs.frozen(kw_only=True, slots=False)
class IdentitySettings:
    """Settings of the gateway's name, appearance, contacts and proofs."""

    name: str = setting(
        "Generation Gateway",
        "Name that the agent manifest, llms.txt and the 402 show to buyers, and Bazaars list.",
    )
    brand_color: str = setting(
        "",
        "Colour of buttons and links, six hexadecimal digits; the pages adapt its shade for "
        "contrast.",
        example="#0f766e",
    )
    logo_url: str = setting(
        "",
        "Address of a picture, by https, that the pages for people show beside the name.",
        example="https://example.com/logo.svg",
    )
    imprint_url: str = setting(
        "",
        "Address of the imprint, by https; the pages for people link to it.",
        example="https://example.com/imprint",
    )
    terms_url: str = setting(
        "",
        "Address of the terms of sale, by https; the pages for people link to it.",
        example="https://example.com/terms",
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
        "E-mail address in /openapi.json and the ERC-8004 file. Registries verify ownership by it.",
        example="operator@example.com",
    )
    ownership_proofs: tuple[str, ...] = setting(
        (),
        "Proofs of ownership that a registry asks for, separated by commas; shown in "
        "/openapi.json.",
        example="0x5f1c...",
    )
    agent_registrations: tuple[str, ...] = setting(
        (),
        "Registrations in ERC-8004 identity registries, separated by commas: chain, registry "
        "and agent number.",
        example="eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432/22",
    )
