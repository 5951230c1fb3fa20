"""`gateway reload` and what is declared at the start: capabilities, and tables of gateway.toml."""

import attrs

from gateway import Capability, Choice, InSandbox, ResultKind, hookimpl
from gateway.settings import EndpointOverride
from tests.conftest import running
from tests.gateway.operation.test_reload import DEARER, PHOTO, ReloadedPlugin, price_of, reload
from tests.patience import until

SONG = Capability(
    name="text-to-song",
    results=(
        ResultKind(
            name="song", media_types={"audio/wav": "wav"}, check=InSandbox(function="json:dumps")
        ),
    ),
)


class DeclaringPlugin(ReloadedPlugin):
    """Also has a capability."""

    def __init__(self) -> None:
        super().__init__()
        self.capability = SONG

    @hookimpl
    def register_capabilities(self, register) -> None:
        register(self.capability)


async def test_a_capability_stays_as_at_the_start(settings, provider, clock):
    plugin = DeclaringPlugin()
    async with running(settings, provider, more=[plugin], now=clock) as gateway:
        plugin.capability = attrs.evolve(SONG, title="Other")
        (sentence,) = await reload(gateway, plugin, DEARER)
        assert "text-to-song is declared in another way than at the start" in sentence
        assert await price_of(gateway) == 30_000


async def test_a_capability_that_a_reload_uses_first_is_loaded(settings, provider, clock):
    plugin = DeclaringPlugin()
    async with running(settings, provider, more=[plugin], now=clock) as gateway:
        catalog, reloads, waiting = gateway.services.catalog, gateway.services.reloads, []
        extend = reloads.on_replaced

        def replaced() -> None:
            extend()
            waiting.extend(catalog.unproven)

        reloads.on_replaced = replaced
        other = {"slug": "song", "capability": SONG.name, "output_format": Choice()}
        song = attrs.evolve(PHOTO, **other)
        await reload(gateway, plugin, PHOTO, song)
        # Its paid tasks wait for it, and nothing has to be bought first.
        assert SONG.name in waiting
        await until(lambda: "song" in catalog.runnable_slugs())


async def test_a_table_of_a_removed_endpoint_is_named_before_the_next_start(
    settings, provider, clock
):
    plugin = ReloadedPlugin()
    tables = attrs.evolve(settings, endpoints={"photo": EndpointOverride()})
    async with running(tables, provider, more=[plugin], now=clock) as gateway:
        removed, table = await reload(gateway, plugin)
        assert removed == "reloaded-plugin: removed photo."
        assert table.startswith("The next start will fail: [endpoints.photo] in gateway.toml")
        (condition,) = await gateway.services.reloads.find_conditions()
        assert condition.subject == "gateway.toml"
        assert await reload(gateway, plugin, PHOTO) == ["reloaded-plugin: added photo."]
        assert await gateway.services.reloads.find_conditions() == []
