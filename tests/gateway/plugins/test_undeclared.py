"""An endpoint whose capability nothing declares is not sold, and its paid tasks wait."""

import attrs

from gateway import Capability, Endpoint, hookimpl, usdc
from tests.conftest import nothing_charged, operators_rows, running

URL = "/api/x402/song"
SONG = Endpoint(
    slug="song",
    title="A song",
    description="It sings.",
    model="choir",
    provider="scripted",
    capability="text-to-song",
    price_units=usdc("0.02"),
)


@attrs.frozen
class Songs:
    """A plugin that sells by a capability which it does not declare."""

    provider: object
    __name__ = "songs"

    @hookimpl
    def register_endpoints(self, register) -> None:
        register(SONG, self.provider)


class Choirs:
    """The plugin that declares it."""

    __name__ = "choirs"

    @hookimpl
    def register_capabilities(self, register) -> None:
        register(Capability(name="text-to-song"))


async def test_it_is_at_no_door_and_nothing_is_charged(settings, provider, chain, payer):
    async with running(settings, more=[Songs(provider)]) as gateway:
        manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
        assert "song" not in str(manifest)
        async with nothing_charged(gateway, chain):
            for header in ({}, {"X-PAYMENT": payer.header(20_000)}):
                answer = await gateway.client.post(URL, json={"prompt": "a"}, headers=header)
                sold = await answer.get_json()
                assert (answer.status_code, sold.get("accepts", [])) in ((402, []), (500, []))
                assert "cannot be checked" in sold["error"]
        assert not provider.requests
        _, rows = await operators_rows(gateway)
        assert "no plugin declares the capability text-to-song" in rows["endpoint song"]["problem"]


async def test_it_is_sold_once_a_plugin_declares_it(settings, provider, payer):
    async with running(settings, more=[Songs(provider), Choirs()]) as gateway:
        header = {"X-PAYMENT": payer.header(20_000)}
        answer = await gateway.client.post(URL, json={"prompt": "a"}, headers=header)
        task = await gateway.wait((await answer.get_json())["taskId"])
        assert task["status"] == "completed"
