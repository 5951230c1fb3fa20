"""Pictures on their way from a provider through the gateway to a buyer."""

import io

import attrs
from PIL import Image

from gateway import Output, Result
from tests.conftest import buy


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 64)).save(file, "PNG")
    return file.getvalue()


async def test_a_buyer_gets_the_format_he_asked_for(gateway, payer, provider):
    provider.script = [
        Result(outputs=(Output(data=picture(), media_type="image/png"),)),
    ]
    answer = await buy(gateway, payer.header(), output_format="webp")
    task = await gateway.wait((await answer.get_json())["taskId"])
    (output,) = task["result"]["outputs"]
    assert (output["mimeType"], output["width"], output["height"]) == ("image/webp", 64, 64)
    path = output["url"].removeprefix("http://gateway.test")
    data = await (await gateway.client.get(path)).get_data()
    assert Image.open(io.BytesIO(data)).format == "WEBP"


async def test_nonsense_is_asked_for_again(gateway, payer, provider):
    nonsense = Result(outputs=(Output(data=b"<html>", media_type="image/png"),))
    provider.script = [nonsense, nonsense]
    answer = await buy(gateway, payer.header())
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 3)


async def test_a_picture_is_checked_for_pictures_only(gateway, payer, provider):
    """A document's output may be anything."""
    catalog = gateway.services.catalog
    registered = catalog["picture"]
    parser = attrs.evolve(registered.endpoint, capability="document-parsing")
    catalog._registered["picture"] = attrs.evolve(registered, endpoint=parser)
    provider.script = [Result(outputs=(Output(data=b"%PDF", media_type="application/pdf"),))]
    answer = await buy(gateway, payer.header())
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["result"]["outputs"][0]["mimeType"] == "application/pdf"
