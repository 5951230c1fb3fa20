"""`gateway examples`: real adapters, a fake vendor, and a shop that shows the results."""

import asyncio
import base64
import io
import json

import pytest
from click.testing import CliRunner
from PIL import Image
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway.cli import main
from gateway.settings.sections import variable
from gateway_shop.examples import SIDES, Examples
from gateway_testing.fakes.api import picture_of
from tests.conftest import running
from tests.gateway.refunds.conftest import environment
from tests.migrated_databases import put_database

SLUG, EDIT = "openrouter-flux-3-image", "openrouter-flux-3-image-edit"
PNG = picture_of(1536, 1152)
PICTURE = {
    "data": [{"b64_json": base64.b64encode(PNG).decode(), "media_type": "image/png"}],
    "usage": {"cost": 0.051},
}


@pytest.fixture
def vendor():
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def values(vendor):
    """The settings of one vendor's two offers, a picture and its edit."""
    vendor.expect_request("/images").respond_with_response(
        Response(json.dumps(PICTURE), 200, content_type="application/json")
    )
    return {
        "openrouter_api_key": "sk-or-v1-never-to-be-seen",
        "openrouter_base_url": vendor.url_for("").rstrip("/"),
        "openrouter_models": f"{SLUG},{EDIT}",
    }


@pytest.fixture
def shop(settings, values):
    return settings.changed(**values)


@pytest.fixture
def run(shop, values):
    """Run the command; return its result and its rows by endpoint."""

    def invoke(*words, **options):
        put_database(shop.data_dir / "gateway.db")
        env = environment(shop) | {variable(name): value for name, value in values.items()}
        done = CliRunner().invoke(main, ["examples", "--json", *words], env=env, **options)
        rows = json.loads(done.stdout) if done.stdout.startswith("[") else []
        return done, {row["endpoint"]: row for row in rows}

    return invoke


def requests_to(vendor) -> list[dict]:
    # The gateway's health checks are no purchases.
    return [request.json for request, _ in vendor.log if request.path == "/images"]


async def front_page(started) -> str:
    await started.services.find(Examples).load()
    return await (await started.client.get("/")).get_data(as_text=True)


async def test_an_open_shop_shows_the_picture_once_it_is_made(shop, run, vendor):
    async with running(shop) as started:
        assert "/examples/" not in await front_page(started)
        done, rows = await asyncio.to_thread(run, "--yes")
        assert done.exit_code == 0, done.output
        assert {row["result"] for row in rows.values()} == {"made"}
        assert rows[SLUG]["cost"] == "$0.0510, as billed"
        page = await front_page(started)
        example = started.services.find(Examples).of(started.services.catalog[SLUG].endpoint)
        assert example.url("card") in page
        prompt = requests_to(vendor)[0]["prompt"]
        assert f"from “{prompt}”" in page
        for size, side in SIDES.items():
            answer = await started.client.get(example.url(size))
            assert answer.headers["Content-Type"] == "image/webp"
            assert answer.headers["Cache-Control"].endswith("immutable")
            with Image.open(io.BytesIO(await answer.get_data())) as picture:
                assert (picture.format, max(picture.size)) == ("WEBP", side)
        form = await (await started.client.get(f"/play/{SLUG}")).get_data(as_text=True)
        assert example.url("large") in form
        for name in (f"{SLUG}.0000.card.webp", f"{SLUG}.webp", "nothing"):
            assert (await started.client.get(f"/examples/{name}")).status_code == 404


def test_it_asks_with_the_cost_and_without_a_yes_nothing_is_made(run, vendor):
    done, _ = run(input="n\n")
    assert done.exit_code == 1
    assert f"{SLUG}: " in done.stderr
    assert "Your vendors bill about $0.1013 for 2 examples." in done.stderr
    assert "Generate, at this cost? [y/N]" in done.stderr
    assert vendor.log == []
    done, rows = run(input="y\n")
    assert done.exit_code == 0, done.output
    assert len(rows) == 2


def test_only_what_lacks_an_example_is_made_and_what_is_named(run, vendor):
    assert len(run("--yes")[1]) == 2
    done, _ = run("--yes")
    assert done.exit_code == 1
    assert "Every offer on sale has an example. Name the endpoints" in done.stderr
    assert len(requests_to(vendor)) == 2
    _, rows = run(SLUG, "--prompt", "a blue door", "--yes")
    assert list(rows) == [SLUG]
    assert requests_to(vendor)[-1]["prompt"] == "a blue door"
    assert len(run("--again", "--yes")[1]) == 2
    done, rows = run(EDIT, SLUG, "nothing", "--remove")
    assert {slug: row["result"] for slug, row in rows.items()} == {
        EDIT: "removed",
        SLUG: "removed",
        "nothing": "had no example",
    }
    assert len(run("--yes")[1]) == 2


def test_a_vendor_that_refuses_one_leaves_the_other(run, vendor):
    def answer(request):
        if "input_references" in request.json or "image" in json.dumps(sorted(request.json)):
            return Response("{}", 400, content_type="application/json")
        return Response(json.dumps(PICTURE), 200, content_type="application/json")

    vendor.clear()
    vendor.expect_request("/images").respond_with_handler(answer)
    done, rows = run("--yes")
    assert done.exit_code == 1, rows
    assert rows[SLUG]["result"] == "made"
    assert rows[EDIT]["result"] == "wrong"
    assert "as expected" in rows[EDIT]["cost"]
    # A paid example is kept: only the other one is made again.
    assert list(run("--yes")[1]) == [EDIT]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing", "--yes"], "nothing: not on sale. On sale: "),
        (["--prompt", "a blue door"], "Name the endpoints, such as openai-image."),
        (["--remove"], "Name the endpoints, such as openai-image."),
    ],
)
def test_a_mistake_is_a_sentence_and_makes_nothing(run, vendor, words, sentence):
    done, _ = run(*words)
    assert done.exit_code != 0
    assert sentence in done.stderr
    assert vendor.log == []


async def test_a_text_is_laid_out_and_its_vendor_named(settings):
    """The embedded parser reads the report."""
    async with running(settings) as started:
        done = await asyncio.to_thread(
            CliRunner().invoke, main, ["examples", "document-parser", "--yes"],
            env=environment(settings),
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        page = await front_page(started)
    assert '<p class="head h1">Quarterly Report</p>' in page
    assert "from a report of two pages" in page


def test_every_bundled_offer_can_be_ordered_with_what_we_have():
    from gateway.domain.description import required_fields
    from gateway_shop.orders import order
    from tests.bundled_endpoints import bundled_endpoints

    prompts = set()
    for turn, endpoint in enumerate(bundled_endpoints().values()):
        request = order(endpoint, turn)
        assert bool(request.attachment) is ("fileBase64" in required_fields(endpoint))
        if request.attachment:
            assert request.attachment.extension in endpoint.file_extensions
        assert request.prompt or "prompt" not in required_fields(endpoint)
        assert request.resolution == endpoint.resolution.default
        prompts.add(request.prompt)
    assert len(prompts) > 10
