"""The payer's proof of the direct flow: the sender of the transfer signs the request (EIP-712).

A transaction hash is public, and without a proof the first client to submit it gets the generation.
The signature binds the hash to one request and proves that the payer sent it.
"""

from collections.abc import Iterable, Sequence

import attrs
from eth_hash.auto import keccak

from gateway.chain.smart_wallets import is_signed_by, recover_signer
from gateway.contracts import Chain, Quote
from gateway.domain import Transfer
from gateway.domain.eip3009 import word
from gateway.errors import InvalidPayment

_DOMAIN_TYPEHASH = keccak(
    b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
_PROOF_TYPEHASH = keccak(b"PayerProof(bytes32 txHash,string slug,bytes32 requestHash)")
_NAME, _VERSION = b"Generation Gateway", b"1"

# The most senders asked by an RPC call. A transaction may contain a thousand dust transfers.
_MAX_ASKED = 8


@attrs.frozen(kw_only=True)
class PayerProof:
    """An unverified `payerSignature`, and the 32 bytes that it must sign."""

    digest: bytes
    signature: bytes = attrs.field(repr=False)


def proof_digest(quote: Quote, tx_hash: str, request_hash: bytes) -> bytes:
    """Return the 32 bytes that the sender of the transfer signs.

    The wallet is the verifying contract, so a signature for one gateway is invalid at another.
    """
    domain = keccak(
        _DOMAIN_TYPEHASH
        + keccak(_NAME)
        + keccak(_VERSION)
        + word(quote.network.chain_id)
        + word(quote.wallet)
    )
    struct = keccak(
        _PROOF_TYPEHASH + word(tx_hash) + keccak(quote.endpoint.slug.encode()) + request_hash
    )
    return keccak(b"\x19\x01" + domain + struct)


async def signed_transfers(
    chain: Chain, transfers: Sequence[Transfer], proof: PayerProof
) -> list[Transfer]:
    """Return the transfers whose sender signed the proof, by key or as a contract (EIP-1271).

    Raises `InvalidPayment` if no sender did, and `ChainUnavailable`.
    """
    largest_first = sorted(transfers, key=lambda transfer: transfer.amount_units, reverse=True)
    senders = list(dict.fromkeys(transfer.sender for transfer in largest_first))
    signer = recover_signer(proof.digest, proof.signature)
    if signer not in senders:
        signer = await _find_smart_signer(chain, senders[:_MAX_ASKED], proof)
    signed = [transfer for transfer in transfers if transfer.sender == signer]
    if not signed:
        raise InvalidPayment(
            "The payerSignature is not by the sender of this transaction's transfer, or signs "
            "another transaction, slug or request.",
        )
    return signed


async def _find_smart_signer(chain: Chain, senders: Iterable[str], proof: PayerProof) -> str | None:
    for sender in senders:
        if await is_signed_by(chain, sender, proof.digest, proof.signature):
            return sender
    return None
