"""The purchases: a picture, its edit and data by x402, a document by direct transfer."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import attrs

from gateway_demo.sample import SCHEMA, sample_pdf
from gateway_demo.tour.client import Client
from gateway_demo.tour.errors import DemoError
from gateway_demo.tour.screen import DONE, NOTABLE, Screen, Step
from gateway_demo.tour.wallet import ONE_ETH, Rpc, Wallet, from_header, to_header

PICTURE_SLUG = "sandbox-image"
EDIT_SLUG = "sandbox-image-edit"
DOCUMENT_SLUG = "document-parser"
DATA_SLUG = "sandbox-extract"
PROMPT = "A lighthouse at dusk, a sailing boat coming home"
CHANGE = "Make it winter, with falling snow"
# The receipt's header in x402 v1 and v2.
_RECEIPTS = ("X-PAYMENT-RESPONSE", "PAYMENT-RESPONSE")


@attrs.define(kw_only=True)
class Buyer:
    """Buys from a gateway, and shows each step."""

    screen: Screen
    client: Client
    rpc: Rpc
    wallet: Wallet
    output: Path
    picture_format: str = "png"

    def buy_picture(self) -> bytes:
        """Request, get the price, sign it, repeat the request with the signature (spec §4.1)."""
        path = f"/api/x402/{PICTURE_SLUG}"
        body: Any = {"prompt": PROMPT, "aspect_ratio": "16:9", "output_format": self.picture_format}
        with self.screen.step("Request without payment") as step:
            refusal = self.client.post(path, body, expect=HTTPStatus.PAYMENT_REQUIRED)
            challenge = from_header(refusal.headers["PAYMENT-REQUIRED"])
            terms = challenge["accepts"][0]
            step.fact("POST", path)
            step.fact("prompt", f'"{PROMPT}"')
            price = dollars(int(terms["amount"]))
            step.fact("answer", f"402 Payment Required: {price}", NOTABLE)
            step.fact("to", f"{terms['payTo']} on {terms['network']}")
        with self.screen.step("Sign the payment") as step:
            payment = self.wallet.sign_payment(challenge)
            step.fact("signed", "EIP-3009 authorization: no transaction, no gas, no account")
        with self.screen.step("Repeat the request with X-PAYMENT") as step:
            status_url, transaction = self._pay(path, body, payment)
            step.fact("answer", "200 OK: paid, task started", DONE)
            step.fact("settled", transaction)
        return self._fetch_picture("picture", status_url)

    def edit_picture(self, picture: bytes) -> None:
        """Buy an edit of a picture."""
        body: Any = {
            "prompt": CHANGE,
            "fileBase64": base64.b64encode(picture).decode(),
            "fileName": f"picture.{self.picture_format}",
            "output_format": self.picture_format,
        }
        with self.screen.step("Request with the picture, sign, repeat") as step:
            status_url = self.buy_at_once(step, EDIT_SLUG, body, f'"{CHANGE}"')
        self._fetch_picture("edited", status_url)

    def extract_data(self) -> None:
        """Buy the data of the document, as the JSON of a schema."""
        body: Any = {"prompt": json.dumps(SCHEMA), **_file_fields()}
        properties: Any = SCHEMA["properties"]
        asked = f"a JSON Schema of {', '.join(properties)}"
        with self.screen.step("Request with a JSON Schema, sign, repeat") as step:
            status_url = self.buy_at_once(step, DATA_SLUG, body, asked)
        with self.follow_task("data", status_url) as (step, task):
            data = self.client.download(task["result"]["outputs"][0])
            step.fact("saved", str(self.save("document.json", data)), NOTABLE)
        self.screen.excerpt(data.decode())

    def buy_at_once(self, step: Step, slug: str, body: Any, prompt: str) -> str:
        """Make both requests in one step; return the task's URL."""
        path = f"/api/x402/{slug}"
        refusal = self.client.post(path, body, expect=HTTPStatus.PAYMENT_REQUIRED)
        challenge = from_header(refusal.headers["PAYMENT-REQUIRED"])
        step.fact("POST", path)
        step.fact("prompt", prompt)
        step.fact("price", dollars(int(challenge["accepts"][0]["amount"])), NOTABLE)
        payment = self.wallet.sign_payment(challenge)
        status_url, transaction = self._pay(path, body, payment)
        step.fact("answer", "200 OK: paid, task started", DONE)
        step.fact("settled", transaction)
        return status_url

    def _pay(self, path: str, body: Any, payment: dict[str, Any]) -> tuple[str, str]:
        """Send a request with its payment; return the task's URL and the settlement."""
        header = to_header(payment)
        answer = self.client.post(path, body, expect=HTTPStatus.OK, X_PAYMENT=header)
        receipt = from_header(
            next(answer.headers[name] for name in _RECEIPTS if name in answer.headers)
        )
        return answer.json()["statusUrl"], receipt["transaction"]

    def _fetch_picture(self, name: str, status_url: str) -> bytes:
        """Wait for a picture, save it, and return its bytes."""
        with self.follow_task("picture", status_url) as (step, task):
            output = task["result"]["outputs"][0]
            picture = self.client.download(output)
            saved = self.save(f"{name}.{self.picture_format}", picture)
            step.fact("saved", str(saved), NOTABLE)
            size = f"{output['width']} x {output['height']}"
            step.fact("", f"{size}, {output['bytes'] / 1000:,.0f} kB, SHA-256 verified")
        return picture

    def buy_document(self) -> str:
        """Find the wallet, transfer the price, send the transaction's hash (spec §4.2).

        Return the document's Markdown.
        """
        with self.screen.step("Look up wallet and price in the manifest") as step:
            manifest = self.client.manifest()
            wallet = manifest["identity"]["walletAddress"]
            price_units = _find_price_units(manifest, DOCUMENT_SLUG)
            step.fact("GET", "/.well-known/agent-manifest.json")
            step.fact("answer", f"{dollars(price_units)} to {wallet}", NOTABLE)
        with self.screen.step("Transfer play USDC") as step:
            tx_hash = self.wallet.transfer_usdc(self.rpc, wallet, price_units)
            gas, cost_wei = self.rpc.gas_paid(tx_hash)
            step.fact("mined", tx_hash)
            step.fact("gas", f"{gas:,} for {ether(cost_wei)}")
        with self.screen.step("Send the hash and a PDF of two pages") as step:
            answer = self._send_document(tx_hash)
            step.fact("POST", "/api/proxy-generate")
            step.fact("answer", f"200 OK: {answer['paidAmount']} USDC paid", DONE)
        with self.follow_task("document", answer["statusUrl"]) as (step, task):
            markdown = self.client.download(task["result"]["outputs"][0])
            step.fact("saved", str(self.save("document.md", markdown)), NOTABLE)
            step.fact("from", str(self.save("document.pdf", sample_pdf())))
        self.screen.excerpt(markdown.decode())
        return markdown.decode()

    def _send_document(self, tx_hash: str) -> dict[str, Any]:
        body = {"slug": DOCUMENT_SLUG, "txHash": tx_hash, **_file_fields()}
        answer = self.client.post("/api/proxy-generate", body, expect=HTTPStatus.OK)
        read: dict[str, Any] = answer.json()
        return read

    @contextmanager
    def follow_task(self, what: str, status_url: str) -> Iterator[tuple[Step, dict[str, Any]]]:
        """Show a step that follows a task, and yield the completed task."""
        seen: list[str] = []

        def show(task: dict[str, Any]) -> None:
            state = _describe_state(task)
            step.now(state)
            # "processing 40%" replaces "processing".
            if seen and state.startswith(seen[-1]):
                seen.pop()
            if state not in seen:
                seen.append(state)

        with self.screen.step(f"Wait for the {what}") as step:
            task = self.client.follow(status_url, show)
            step.fact("GET", status_url)
            step.fact("states", " → ".join(seen))
            yield step, task

    def save(self, name: str, content: bytes) -> Path:
        """Write a bought file to the output folder, and return its path."""
        path = self.output / name
        path.write_bytes(content)
        return path


def _file_fields() -> dict[str, str]:
    return {
        "fileBase64": base64.b64encode(sample_pdf()).decode(),
        "fileName": "document.pdf",
    }


def _describe_state(task: dict[str, Any]) -> str:
    progress = task["progress"]
    share = f" {progress:.0%}" if progress is not None and not task["done"] else ""
    again = f" (attempt {task['attempt']})" if task["attempt"] > 1 else ""
    return f"{task['status']}{share}{again}"


def _find_price_units(manifest: dict[str, Any], slug: str) -> int:
    for endpoint in manifest["availableEndpoints"]:
        if endpoint["slug"] == slug:
            price: float = endpoint["price"]
            return round(price * 10**6)
    raise DemoError(f"The gateway does not sell {slug}.")


def dollars(units: int) -> str:
    """Return units of 10⁻⁶ USDC as text, such as `0.02 USDC`."""
    return f"{units / 10**6:.6f}".rstrip("0").rstrip(".") + " USDC"


def ether(wei: int) -> str:
    """Return wei as text, such as `0.01 ETH`."""
    return f"{wei / ONE_ETH:.9f}".rstrip("0").rstrip(".") + " ETH"
