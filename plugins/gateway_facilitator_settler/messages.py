"""Requests to and responses from a facilitator: x402 v1 and v2, scheme `exact` on EVM.

The token is sent as an address, never as "USDC". Addresses have their checksum, which some
facilitators require. A facilitator's response is never trusted: the chain decides.
"""

import re
from collections.abc import Mapping
from typing import Any

import attrs

from gateway import Authorization, Endpoint, Settings
from gateway.domain.eip3009 import Network, checksum_address
from gateway.domain.listing import BAZAAR, UPFRONT, bazaar_of, resource_of

_V1, _V2 = 1, 2
_SCHEME = "exact"

# As in the challenge that the payer answered.
_MAX_TIMEOUT_S = 300

_ROUTE = "/api/x402"
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")

_UNKNOWN = "invalid_payload"
_PREFIX = "invalid_exact_evm_payload_"
_SIGNATURE = _PREFIX + "signature"
_VALUE = _PREFIX + "authorization_value_mismatch"
_BALANCE = "invalid_exact_evm_insufficient_balance"
SPENT = "invalid_exact_evm_nonce_already_used"
_STANDARD = {
    _SIGNATURE,
    _VALUE,
    _BALANCE,
    SPENT,
    _UNKNOWN,
    _PREFIX + "recipient_mismatch",
    _PREFIX + "authorization_valid_before",
    _PREFIX + "authorization_valid_after",
    "invalid_network",
    "unsupported_scheme",
    "invalid_x402_version",
}
_SAME_AS = {
    "insufficient_funds": _BALANCE,
    "insufficient_balance": _BALANCE,
    "nonce_already_used": SPENT,
    "authorization_already_used": SPENT,
    "invalid_exact_evm_authorization_already_used": SPENT,
    "invalid_scheme": "unsupported_scheme",
    _PREFIX + "authorization_value": _VALUE,
    _PREFIX + "authorization_value_too_low": _VALUE,
    _PREFIX + "authorization_typed_data_message": _SIGNATURE,
    _PREFIX + "signature_address": _SIGNATURE,
    _PREFIX + "undeployed_smart_wallet": _SIGNATURE,
    "invalid_exact_evm_failed_to_verify_signature": _SIGNATURE,
    "eip6492_factory_not_allowed": _SIGNATURE,
}
# Faults of the facilitator or the gateway. A new signature would not help the payer.
_NOT_THE_PAYERS = {
    "unexpected_verify_error",
    "unexpected_settle_error",
    "unexpected_error",
    "internal_error",
    "network_mismatch",
    "missing_eip712_domain",
    "asset_not_deployed_contract",
    "invalid_payment_requirements",
    "invalid_exact_evm_failed_to_get_network_config",
    "invalid_exact_evm_failed_to_get_asset_info",
    "invalid_exact_evm_token_name_mismatch",
    "invalid_exact_evm_token_version_mismatch",
    "invalid_exact_evm_eip3009_not_supported",
    "facilitator_insufficient_gas",
}


def version_of(supported: Mapping[str, Any], network: Network) -> int | None:
    """Return the newest x402 version in `/supported` for our scheme and network, or None."""
    kinds = supported.get("kinds")
    listed = [kind for kind in kinds if isinstance(kind, dict)] if isinstance(kinds, list) else []
    for version in (_V2, _V1):
        ours = {
            "x402Version": version,
            "scheme": _SCHEME,
            "network": _network_name(network, version),
        }
        if any(kind | ours == kind for kind in listed):
            return version
    return None


def lists_endpoints(supported: Mapping[str, Any]) -> bool:
    """Return whether `/supported` lists the extension by which a Bazaar lists endpoints."""
    named = supported.get("extensions")
    return isinstance(named, list) and BAZAAR in named


@attrs.frozen(kw_only=True)
class Purchase:
    """A signed authorization to settle, and the endpoint it pays for."""

    signed: Authorization
    price_units: int
    slug: str

    # None if the endpoint is no longer on sale.
    endpoint: Endpoint | None


def request_of(settings: Settings, version: int, purchase: Purchase) -> dict[str, Any]:
    """Return the body for `/verify` and `/settle`.

    It is the same for one purchase as long as catalogue and settings are. A Bazaar's listing comes
    from the catalogue, never from the buyer's input.
    """
    network, signed = settings.chain, purchase.signed
    signature = {
        "signature": "0x" + signed.signature.hex(),
        "authorization": _authorization_of(signed),
    }
    terms: dict[str, Any] = {
        "scheme": _SCHEME,
        "network": _network_name(network, version),
        "asset": checksum_address(network.token),
        "payTo": checksum_address(settings.wallet_key),
        "maxTimeoutSeconds": _MAX_TIMEOUT_S,
        "extra": {"name": network.token_name, "version": network.token_version},
    }
    url = f"{settings.base_url}{_ROUTE}/{purchase.slug}"
    resource, amount = resource_of(purchase.endpoint, url, settings.name), str(purchase.price_units)
    if version == _V1:
        payload = {"scheme": _SCHEME, "network": network.name, "payload": signature}
        about = {name: resource[name] for name in ("description", "mimeType")}
        return _envelope(
            _V1, payload, terms | about | {"maxAmountRequired": amount, "resource": url}
        )
    requirements = terms | {"amount": amount, "extra": terms["extra"] | UPFRONT}
    payload = {"payload": signature, "accepted": requirements, "resource": resource}
    if purchase.endpoint is not None:
        payload["extensions"] = {BAZAAR: bazaar_of(purchase.endpoint)}
    return _envelope(_V2, payload, requirements)


def _envelope(
    version: int, payload: Mapping[str, Any], requirements: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "x402Version": version,
        "paymentPayload": {"x402Version": version, **payload},
        "paymentRequirements": dict(requirements),
    }


def refusal_of(reason: Any) -> str | None:
    """Map a facilitator's `invalidReason` to the standard reason.

    Returns None if the payer is not at fault. An unknown reason becomes `invalid_payload`.
    """
    text = reason if isinstance(reason, str) else ""
    if text in _NOT_THE_PAYERS:
        return None
    known = _SAME_AS.get(text, text)
    return known if known in _STANDARD else _UNKNOWN


def hash_of(settled: Mapping[str, Any], network: Network) -> str | None:
    """Return the transaction hash from `/settle`, or None without one on our network."""
    tx_hash = settled.get("transaction")
    if settled.get("network") not in (network.name, network.caip2):
        return None
    if not isinstance(tx_hash, str) or not _HASH.fullmatch(tx_hash):
        return None
    return tx_hash.lower()


def _network_name(network: Network, version: int) -> str:
    return network.name if version == _V1 else network.caip2


def _authorization_of(signed: Authorization) -> dict[str, str]:
    return {
        "from": checksum_address(signed.sender),
        "to": checksum_address(signed.recipient),
        "value": str(signed.value_units),
        "validAfter": str(signed.valid_after),
        "validBefore": str(signed.valid_before),
        "nonce": signed.nonce,
    }
