"""Hypothesis strategies of HTTP requests: bodies of both flows, payment headers, paths."""

import base64
from urllib.parse import quote

import attrs
from eth_account import Account
from hypothesis import strategies as st

from gateway_demo.token import USDC_ADDRESSES, Authorization
from tests.authorizations import payload_of
from tests.conftest import WALLET
from tests.proof.fuzz.hostile import ODD_TEXTS, dumped, mostly, mutated, spoiled, texts, values

PICTURE = {"prompt": "a boat", "aspect_ratio": "16:9", "output_format": "png", "resolution": "1K"}
PAPER = {"prompt": "all", "fileBase64": "aGVsbG8=", "fileName": "a.pdf"}
DIRECT = PICTURE | {"slug": "picture", "txHash": "0x" + "ab" * 32}
DIRECT_PAPER = PAPER | {"slug": "paper", "txHash": "0x" + "cd" * 32}

x402_bodies = spoiled(st.sampled_from([PICTURE, PAPER]).flatmap(mutated))
direct_bodies = spoiled(st.sampled_from([DIRECT, DIRECT_PAPER]).flatmap(mutated))
bodies = mostly(x402_bodies | direct_bodies, st.binary(max_size=40))


@attrs.frozen(kw_only=True)
class Ask:
    """One request; its path is already quoted."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def direct_ask(tx_hash: str) -> Ask:
    """Return a valid request of the direct flow, except for its transaction."""
    body = dumped({"slug": "picture", "prompt": "a boat", "txHash": tx_hash})
    headers = (("Content-Type", "application/json"),)
    return Ask(method="POST", path="/api/proxy-generate", headers=headers, body=body)


def payment(version: int) -> dict:
    """Return a valid payment, signed by an account without money."""
    poor = Account.from_key(b"\x07" * 32)
    far = 4_000_000_000  # the clock of these tests stands still shortly before
    signed = Authorization(
        sender=poor.address, to=WALLET, units=20_000, valid_before=far, nonce=b"\x05" * 32
    )
    signature = signed.sign(poor.key, 8453, USDC_ADDRESSES[8453])
    return payload_of(signed, signature, version=version)


PAYMENTS = [payment(1), payment(2)]


# Of the right shape, but wrong.
PLAUSIBLE = st.sampled_from(
    [1, 2, "1", "20000", 20_000, "020000", 10_000, "0", 2**256 - 1, str(2**256), "4000000000",
     "3999999720", 3_999_999_700, "4000000300", "4000000301", "0x" + "ab" * 20, WALLET,
     WALLET.upper().replace("X", "x"), "0x" + "00" * 20, "0x" + "ab" * 32, "0x" + "00" * 65,
     "0x" + "ff" * 65, "0x" + "11" * 64 + "1b", "0x", "0x" + "11" * 4000, "base", "eip155:8453",
     "base-sepolia", "eip155:1", "exact", "upto", "USDC", USDC_ADDRESSES[8453].lower()]
)  # fmt: skip


@st.composite
def headers(draw, payments=PAYMENTS):
    """Draw a payment header: Base64 of nearly a payment, sometimes with broken Base64."""
    near = st.sampled_from(payments).flatmap(lambda paid: mutated(paid, mostly(PLAUSIBLE, values)))
    data = draw(mostly(spoiled(near), st.binary(max_size=60)))
    text = base64.b64encode(data).decode()
    kind = draw(st.sampled_from(["as is"] * 5 + ["url", "bare", "space", "cut", "mark", "raw"]))
    if kind == "url":
        return text.replace("+", "-").replace("/", "_")
    if kind == "mark":
        return text + draw(st.sampled_from(["=", "==", "!", "é", "\xff", "-_+/"]))
    if kind == "raw":
        return data.decode("latin-1")
    cut = {"bare": text.rstrip("="), "space": f" {text}\t", "cut": text[: len(text) // 2]}
    return cut.get(kind, text)


def _visible(text: str) -> str:
    """Return the characters that an HTTP server accepts in a header."""
    return "".join(sign for sign in text if "\x20" <= sign <= "\xff" and sign != "\x7f").strip()


header_texts = st.one_of(texts, headers()).map(_visible)
slugs = mostly(st.sampled_from(["picture", "picture", "paper"]), texts | st.just("nothing"))
types = mostly(
    st.just("application/json"),
    st.sampled_from(
        ["application/json; charset=utf-7", "text/plain", "", "multipart/form-data", "x/y; a=\xff"]
    ),
)
content_types = types.map(lambda value: ("Content-Type", value))


def quoted(text: str) -> str:
    """Return a text as part of a path, with lone surrogates as bytes."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


@st.composite
def x402_asks(draw):
    """Draw a request of the x402 flow with a hostile body."""
    payment_header = draw(st.none() | header_texts)
    named = (("X-PAYMENT", payment_header),) if payment_header is not None else ()
    path = f"/api/x402/{quoted(draw(slugs))}{draw(queries)}"
    body = draw(mostly(x402_bodies, st.binary(max_size=30)))
    return Ask(method="POST", path=path, headers=(draw(content_types), *named), body=body)


@st.composite
def payment_asks(draw):
    """Draw a request of the x402 flow with a hostile payment."""
    name = draw(st.sampled_from(["X-PAYMENT", "PAYMENT-SIGNATURE", "x-payment"]))
    value = _visible(draw(headers()))
    return Ask(
        method="POST",
        path="/api/x402/picture",
        headers=(("Content-Type", "application/json"), (name, value)),
        body=dumped({"prompt": draw(st.sampled_from(["a boat", "é"]))}),
    )


@st.composite
def direct_asks(draw):
    """Draw a request of the direct flow, sometimes with an Idempotency-Key."""
    key = draw(st.none() | texts.map(_visible))
    named = (("Idempotency-Key", key),) if key is not None else ()
    body = draw(mostly(direct_bodies, st.binary(max_size=30)))
    path = f"/api/proxy-generate{draw(queries)}"
    return Ask(method="POST", path=path, headers=(draw(content_types), *named), body=body)


_names = st.sampled_from(["wait", "x402Version", "expires", "signature", "a"])
_pairs = st.tuples(_names, texts).map(lambda pair: f"{pair[0]}={quoted(pair[1])}")
_raw = st.sampled_from(
    ["wait=%FF", "=", "&&&", "wait", "wait=1e-3", "wait=nan", "wait=-0", "%", "?"]
)
queries = st.lists(_pairs | _raw, max_size=2).map(
    lambda parts: "?" + "&".join(parts) if parts else ""
)
_bytes = st.binary(max_size=12).map(lambda data: quote(data, safe=""))
_segments = st.sampled_from(ODD_TEXTS).map(quoted) | _bytes
_roots = st.sampled_from(
    ["/api/task/", "/files/", "/files/a/", "/api/x402/", "/api/", "/", "//", "/.well-known/",
     "/admin/", "/api/task/00000000-0000-4000-8000-000000000000", "/llms.txt", "/sitemap.xml"]
)  # fmt: skip


@st.composite
def path_asks(draw):
    """Draw a request of any method to a path similar to ours: tasks, files, anything."""
    method = draw(st.sampled_from(["GET"] * 6 + ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"]))
    path = draw(_roots) + draw(_segments) + draw(st.sampled_from(["", "", "/", "/0.png"]))
    named = draw(st.lists(st.tuples(st.sampled_from(_ASKED_FOR), header_texts), max_size=1))
    return Ask(method=method, path=path + draw(queries), headers=tuple(named))


_ASKED_FOR = [
    "Range",
    "If-None-Match",
    "If-Modified-Since",
    "X-Request-Id",
    "Accept",
    "Cookie",
    "Host",
]
