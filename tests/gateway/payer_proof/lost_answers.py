"""Ways to pay, and refusals that come between a purchase and its repeat."""

import base64
import io
import itertools
from types import SimpleNamespace

import attrs
from PIL import Image

from gateway import Choice, Endpoint, Transient, hookimpl, usdc
from gateway.errors import ChecksFull, TooMuchUnpaid
from tests.conftest import ScriptedPlugin
from tests.gateway.mpp.agent import Agent as MppAgent
from tests.gateway.mpp.agent import base64url
from tests.plugins.gateway_mcp.app.agent import Agent as McpAgent

EDIT = Endpoint(
    slug="edit",
    title="An edit",
    description="Another picture.",
    model="brush-1",
    provider="scripted",
    capability="image-editing",
    price_units=usdc("0.02"),
    required_fields=("prompt", "fileBase64", "fileName"),
    file_extensions=(".png",),
    aspect_ratio=Choice(values=("1:1", "16:9"), default="1:1"),
    output_format=Choice(values=("png", "jpg"), default="jpg"),
)


def photo() -> str:
    """Return a picture in Base64 that the gateway puts right before it sells the edit."""
    file = io.BytesIO()
    Image.new("CMYK", (64, 64)).convert("P").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


URL = "/api/x402/edit"
ORDER = {
    "prompt": "make it winter",
    "output_format": "png",
    "fileBase64": photo(),
    "fileName": "photo.png",
}


class EditPlugin(ScriptedPlugin):
    """Sells edits, whose pictures are checked in the sandbox before payment."""

    __name__ = "edit-plugin"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        register(EDIT, self.provider)


async def _post(gateway, url, body, headers):
    answer = await gateway.client.post(url, json=body, headers=headers)
    return answer.status_code, await answer.get_json()


# Each function returns another one, which sends the same paid request each time it is called.


async def x402(gateway, payer, key):
    headers = {"X-PAYMENT": payer.header()}
    return lambda: _post(gateway, URL, ORDER, headers)


async def x402_key(gateway, payer, key):
    """Each repeat has a fresh signature under the same key."""

    def send():
        headers = {"X-PAYMENT": payer.header(), "Idempotency-Key": key}
        return _post(gateway, URL, ORDER, headers)

    return send


async def direct(gateway, payer, key):
    body = ORDER | {"slug": "edit", "txHash": payer.transfer(20_000)}
    headers = {"Idempotency-Key": key}
    return lambda: _post(gateway, "/api/proxy-generate", body, headers)


async def mpp(gateway, payer, key):
    agent = MppAgent(gateway, payer)
    text = base64url(agent.credential(await agent.challenge(URL, **ORDER)))
    headers = {"Authorization": f"Payment {text}"}
    return lambda: _post(gateway, URL, ORDER, headers)


async def ticket(gateway, payer, key):
    headers = {"Authorization": f"Ticket {key}:20000"}
    return lambda: _post(gateway, URL, ORDER, headers)


async def ticket_key(gateway, payer, key):
    """Each repeat has another ticket of the same payer under the same key."""
    count = itertools.count()

    def send():
        number = f"{key}.{next(count)}"
        headers = {"Authorization": f"Ticket {number}:20000", "Idempotency-Key": key}
        return _post(gateway, URL, ORDER, headers)

    return send


async def mcp(gateway, payer, key):
    agent, payment = McpAgent(gateway), payer.payload(version=2)

    async def send():
        call = {"name": "edit", "arguments": ORDER}
        answer = await agent.ask("tools/call", call, {"x402/payment": payment})
        if "error" in answer:
            return 404, {"error": answer["error"]["message"]}
        result = answer["result"]
        shown = result.get("structuredContent") or {}
        if "taskId" in shown:
            return 200, shown
        return 500, {"error": result["content"][0]["text"]}

    return send


DOORS = (x402, x402_key, direct, mpp, ticket, ticket_key, mcp)


# -- each function makes the gateway refuse what it has just sold


def _endpoint(gateway, **changes):
    """Change the endpoint as an upgrade of its plugin does."""
    catalog = gateway.services.catalog
    registered = catalog.find("edit")
    endpoint = attrs.evolve(registered.endpoint, **changes)
    catalog._registered["edit"] = attrs.evolve(registered, endpoint=endpoint)
    catalog._cache.clear()


def _provider(gateway):
    return gateway.services.catalog.find("edit").upstream.provider


def _settings(gateway, **changes):
    services = gateway.services
    services.settings = services.readiness.settings = attrs.evolve(services.settings, **changes)


def the_provider_fails(gateway):
    async def validate(request, endpoint):
        raise Transient("503")

    _provider(gateway).validate = validate


def the_provider_refuses(gateway):
    _provider(gateway).refuse = "No more winters."


def checks_are_full(gateway):
    def turn(address):
        raise ChecksFull

    gateway.services.intake.checks = SimpleNamespace(turn=turn)


def files_took_too_much(gateway):
    def turn(address):
        raise TooMuchUnpaid(7)

    gateway.services.intake.checks = SimpleNamespace(turn=turn)


def the_sandbox_fails(gateway):
    async def read(attachment, **_):
        raise OSError("no more processes")

    kept = gateway.services.intake.sent_pictures
    gateway.services.intake.sent_pictures = SimpleNamespace(read=read, close=kept.close)


def it_drains(gateway):
    gateway.services.readiness.is_draining = True


def the_node_does_not_sell(gateway):
    gateway.services.readiness._sells = False


def the_disk_is_full(gateway):
    _settings(gateway, min_free_disk_mb=10**9)


def a_circuit_is_open(gateway):
    gateway.services.catalog.find("edit").upstream.circuit.trip("broken", pause_s=3600)


def it_is_switched_off(gateway):
    gateway.services.catalog._switched_off.add("edit")
    gateway.services.catalog._cache.clear()


def it_is_retired(gateway):
    _endpoint(gateway, retires="2020-01-01")


def no_plugin_has_it(gateway):
    gateway.services.catalog.withdraw("edit-plugin")


def it_is_dearer(gateway):
    _endpoint(gateway, price_units=50_000)


def it_has_other_defaults(gateway):
    _endpoint(gateway, aspect_ratio=Choice(values=("1:1", "16:9"), default="16:9"))
    _provider(gateway).refuse = "No more winters."


def it_has_other_choices(gateway):
    _endpoint(gateway, output_format=Choice(values=("webp",), default="webp"))


def it_takes_other_files(gateway):
    _endpoint(gateway, file_extensions=(".jpg",))


def it_takes_no_files(gateway):
    _endpoint(gateway, file_extensions=(), capability="text-to-image", required_fields=("prompt",))


def it_takes_shorter_prompts(gateway):
    _endpoint(gateway, max_prompt_chars=3)


def the_wallet_is_wrong(gateway):
    gateway.services.wallet.problem = "a contract"


class _Everything:
    def __contains__(self, method):
        return True


def the_chain_is_silent(gateway):
    gateway.chain.broken = _Everything()


def a_signature_is_required(gateway):
    _settings(gateway, require_payer_signature=True)


REFUSALS = (
    *(the_provider_fails, the_provider_refuses, checks_are_full, files_took_too_much),
    *(the_sandbox_fails, it_drains, the_node_does_not_sell, the_disk_is_full, a_circuit_is_open),
    *(it_is_switched_off, it_is_retired, no_plugin_has_it, it_is_dearer, it_has_other_defaults),
    *(it_has_other_choices, it_takes_other_files, it_takes_no_files, it_takes_shorter_prompts),
    *(the_wallet_is_wrong, the_chain_is_silent, a_signature_is_required),
)
