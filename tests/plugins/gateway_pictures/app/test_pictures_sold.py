"""Pictures are cut out and enlarged for money, by the real models in the sandbox."""

import base64

import pytest
from PIL import Image, ImageCms

from tests.conftest import nothing_charged, running
from tests.plugins.gateway_pictures.drawn import file_of, opened, subject, texture

CUT, LARGE, REPAIR = (
    f"/api/x402/{slug}" for slug in ("background-removal", "image-upscaling", "image-repair")
)
CENT, TWO_CENTS = 10_000, 20_000


@pytest.fixture
async def gateway(settings, chain):
    async with running(settings) as started:
        started.chain = chain
        yield started


def sent(data: bytes, name: str = "a.png", **more) -> dict:
    return {"fileBase64": base64.b64encode(data).decode(), "fileName": name, **more}


async def bought(gateway, payer, url: str, body: dict) -> tuple[dict, Image.Image | None]:
    """Pay the price of a 402, and return the task and its picture."""
    quote = await (await gateway.client.post(url, json=body)).get_json()
    price = int(quote["accepts"][0]["amount"])
    answer = await gateway.client.post(url, json=body, headers={"X-PAYMENT": payer.header(price)})
    task = await gateway.wait((await answer.get_json())["taskId"])
    if task["status"] != "completed":
        return task, None
    (output,) = task["result"]["outputs"]
    file = await gateway.client.get(output["url"].removeprefix("http://gateway.test"))
    picture = opened(await file.get_data())
    assert (output["width"], output["height"]) == picture.size
    return task, picture


async def test_a_cut_out_is_bought_with_and_without_a_background(gateway, payer):
    picture, _ = subject()
    _, made = await bought(gateway, payer, CUT, sent(file_of(picture), output_format="webp"))
    assert (made.mode, made.format, made.getpixel((2, 2))[3]) == ("RGBA", "WEBP", 0)
    _, made = await bought(gateway, payer, CUT, sent(file_of(picture), prompt="#fc0"))
    assert (made.mode, made.format, made.getpixel((2, 2))) == ("RGB", "PNG", (255, 204, 0))


def turned(picture: Image.Image) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return file_of(picture, "JPEG", quality=95, exif=exif)


def with_profile(picture: Image.Image) -> bytes:
    """Return the picture in other colours, with the profile that undoes them."""
    swapped = ImageCms.createProfile("LAB")
    target = ImageCms.ImageCmsProfile(swapped)
    return file_of(picture.convert("L"), "PNG", icc_profile=target.tobytes())


GREY = texture(80, 64).convert("L")
KINDS = {
    "turned": (turned(texture(80, 64)), "a.jpg", (128, 160), "RGB"),
    "grey": (file_of(GREY), "a.png", (160, 128), "RGB"),
    "16 bits": (
        file_of(GREY.convert("I").point(lambda n: n * 257).convert("I;16")),
        "a.png",
        (160, 128),
        "RGB",
    ),
    "CMYK": (file_of(texture(80, 64).convert("CMYK"), "JPEG"), "a.jpg", (160, 128), "RGB"),
    "palette": (file_of(texture(80, 64).convert("P")), "a.png", (160, 128), "RGB"),
    "alpha": (file_of(texture(80, 64).convert("RGBA")), "a.png", (160, 128), "RGBA"),
    "profile": (with_profile(texture(80, 64)), "a.png", (160, 128), "RGB"),
}


async def test_each_kind_of_picture_is_enlarged_upright_and_in_its_brightness(gateway, payer):
    for kind, (data, name, size, mode) in KINDS.items():
        _, made = await bought(gateway, payer, LARGE, sent(data, name))
        assert (kind, made.size, made.mode) == (kind, size, mode)
        if kind in ("grey", "16 bits"):
            small = made.convert("L").resize(GREY.size, Image.Resampling.BOX)
            assert (
                abs(small.resize((1, 1)).getpixel((0, 0)) - GREY.resize((1, 1)).getpixel((0, 0)))
                < 4
            )


async def test_the_price_follows_the_megapixels(gateway):
    for url, size, price in (
        (CUT, (70, 70), CENT),
        (CUT, (3000, 2500), 16_000),
        (LARGE, (70, 70), TWO_CENTS),
        (LARGE, (1600, 1000), 2 * TWO_CENTS),
    ):
        data = file_of(Image.linear_gradient("L").resize(size), "PNG", compress_level=1)
        quote = await (await gateway.client.post(url, json=sent(data))).get_json()
        assert quote["accepts"][0]["amount"] == str(price)


GRADIENT = Image.linear_gradient("L")
MOVING = file_of(
    GRADIENT.convert("RGB"),
    "WEBP",
    save_all=True,
    append_images=[GRADIENT.convert("RGB").rotate(90)],
)
REFUSED = [
    (CUT, sent(file_of(subject()[0]), prompt="a beach"), "The prompt is no colour"),
    (CUT, sent(file_of(subject()[0])[:2000]), "damaged"),
    (CUT, sent(file_of(Image.new("L", (1, 1)))), "each side needs 64"),
    (CUT, sent(MOVING, "a.webp"), "moves"),
    (CUT, sent(file_of(Image.new("L", (5100, 5000)))), "up to 25,000,000 in all"),
    (CUT, sent(file_of(GRADIENT, "GIF"), "a.gif"), "must end in one of"),
    (LARGE, sent(file_of(GRADIENT.resize((2600, 2500)))), "up to 25,000,000 in all are sold"),
    (LARGE, sent(file_of(GRADIENT.resize((1300, 1300))), resolution="4x"), "smaller resolution"),
    (LARGE, sent(file_of(GRADIENT), resolution="3x"), "resolution"),
    (REPAIR, sent(file_of(GRADIENT.resize((2500, 2000)))), "megapixels"),
]


async def test_a_request_that_cannot_be_served_is_refused_before_payment(gateway, payer):
    header = {"X-PAYMENT": payer.header(TWO_CENTS)}
    async with nothing_charged(gateway, gateway.chain):
        for url, body, sentence in REFUSED:
            answer = await gateway.client.post(url, json=body, headers=header)
            error = await answer.get_json()
            assert (answer.status_code, error["code"]) == (400, "VALIDATION_ERROR"), sentence
            assert sentence in error["error"]


async def test_a_picture_without_a_subject_is_a_refund_due_and_stays_on_sale(gateway, payer):
    for _ in range(6):
        task, _ = await bought(gateway, payer, CUT, sent(file_of(GRADIENT)))
        assert (task["status"], task["details"]) == ("failed", "invalid_input")
        assert "No subject was found" in task["error"]
        assert task["refund"]["amount"] == 0.01
    assert (await gateway.client.post(CUT, json=sent(file_of(GRADIENT)))).status_code == 402
