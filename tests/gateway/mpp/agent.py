"""A buyer with the Machine Payments Protocol, written from its drafts."""

import base64
import json
import re

import attrs
from eth_utils.crypto import keccak

URL = "/api/x402/picture"
BODY = {"prompt": "a boat"}
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


def base64url(value) -> str:
    """Return the Base64url of an object's JSON, without padding."""
    raw = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpacked(text: str) -> dict:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def parsed(header: str) -> dict:
    """Return the parameters of a `WWW-Authenticate: Payment …`."""
    scheme, _, parameters = header.partition(" ")
    assert scheme == "Payment"
    return dict(_PARAMETER.findall(parameters))


def pair_hash(challenge: dict) -> bytes:
    """Return the nonce in the form of mppx and pympp."""
    pair = [challenge["id"], challenge["realm"]]
    return keccak(text=json.dumps(pair, separators=(",", ":"), ensure_ascii=False))


def packed_hash(challenge: dict) -> bytes:
    """Return the nonce of draft-evm-charge-00: abi.encodePacked(id, realm)."""
    return keccak(text=challenge["id"] + challenge["realm"])


@attrs.define
class Agent:
    """Requests a price, signs, and repeats the request."""

    gateway: object
    payer: object

    async def challenge(self, url=URL, **fields) -> dict:
        answer = await self.gateway.client.post(url, json=BODY | fields)
        assert answer.status_code == 402
        return parsed(answer.headers["WWW-Authenticate"])

    def credential(self, challenge: dict, *, nonce=pair_hash, echo=None, source=None, **changes):
        """Return a credential as an object; `changes` are the authorization's."""
        asked = unpacked(challenge["request"])
        signed = self.payer.authorization(
            **{
                "units": int(asked["amount"]),
                "to": asked["recipient"],
                "nonce": nonce(challenge),
            }
            | changes
        )
        chain = self.payer.chain
        signature = signed.sign(self.payer.account.key, chain.chain_id, chain.usdc)
        payload = {
            "type": "authorization",
            "from": signed.sender,
            "to": signed.to,
            "value": str(signed.units),
            "validAfter": str(signed.valid_after),
            "validBefore": str(signed.valid_before),
            "nonce": "0x" + signed.nonce.hex(),
            "signature": "0x" + signature.hex(),
        }
        own = f"did:pkh:eip155:{chain.chain_id}:{signed.sender}"
        return {
            "challenge": challenge | (echo or {}),
            "payload": payload,
            "source": own if source is None else source,
        }

    async def pay(self, credential, url=URL, headers=None, **fields):
        text = credential if isinstance(credential, str) else base64url(credential)
        headers = {"Authorization": f"Payment {text}"} | (headers or {})
        return await self.gateway.client.post(url, json=BODY | fields, headers=headers)

    async def buy(self, **changes):
        return await self.pay(self.credential(await self.challenge(), **changes))
