"""If a server refuses one of our optional fields by name, the request is repeated without it.

Evidence: error bodies reported by users. OpenAI's and new-api's: vercel/ai issue 6102 and uni-api
issue 165. LiteLLM's: BerriAI/litellm issue 12408. FastAPI's: its own models of errors.
"""

import attrs
import pytest
from openai_site import PATH, PICTURE, CompatibleServer
from vendor_site import PlainJob, on_sale

import gateway_openai
from gateway import AccountProblem, ContentPolicy, GenerationRequest, InvalidInput, Outbound
from gateway.domain import Attachment
from tests.conftest import PNG

GOOD = (200, PICTURE)
EDITS = "/v1/images/edits"


def by_param(name, code="unknown_parameter"):
    error = {"message": f"Unknown parameter: '{name}'.", "type": "new_api_error"}
    return 400, {"error": error | {"param": name, "code": code}}


def by_litellm(name):
    message = (
        f"litellm.UnsupportedParamsError: Setting `{name}` is not supported by openai, "
        "sd3.5-large. To drop it from the call, set `litellm.drop_params = True`."
    )
    return 400, {"error": {"message": message, "type": "None", "param": "None", "code": "400"}}


def by_fastapi(name):
    entry = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are …"}
    return 422, {"detail": [entry]}


@pytest.fixture
def site(httpserver):
    return CompatibleServer(httpserver)


async def submit_twice(site, *replies, path=PATH, request=None, **values):
    """Sell two pictures by one provider; return the fields of each request."""
    site.answers("POST", path, *replies)
    slug = "openai-image" if path == PATH else "openai-image-edit"
    seller = site.seller(slug, **values)
    try:
        for _ in range(2):
            (output,) = (await seller.submit(request)).outputs
            assert output.data == PNG
    finally:
        await seller.provider.close()
    return [set(asked.json if path == PATH else asked.form) for asked in site.seen]


@pytest.mark.parametrize("refuse", [by_param, by_litellm, by_fastapi])
@pytest.mark.parametrize("name", ["response_format", "output_format", "n"])
async def test_a_field_that_is_refused_is_left_out_and_that_is_remembered(site, refuse, name):
    first, again, later = await submit_twice(site, refuse(name), GOOD)
    assert name in first
    assert again == later == first - {name}


async def test_a_server_may_refuse_one_field_after_the_other(site):
    replies = (by_param("response_format"), by_litellm("n"), by_fastapi("output_format"), GOOD)
    *_, last, later = await submit_twice(site, *replies)
    assert last == later == {"model", "prompt", "size"}
    assert len(site.seen) == 5


async def test_an_edit_is_asked_for_again_with_its_picture(site):
    request = GenerationRequest(
        prompt="winter", attachment=Attachment(name="a.png", data=PNG), output_format="png"
    )
    values = {"openai_edit_model": "qwen-image-edit"}
    fields = await submit_twice(
        site, by_param("response_format"), GOOD, path=EDITS, request=request, **values
    )
    assert fields[1] == fields[2] == fields[0] - {"response_format"}
    for asked in site.seen:
        assert asked.files["image"].read() == PNG
        asked.close()


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (by_param("size"), AccountProblem),
        (by_param("model"), AccountProblem),
        (by_litellm("prompt"), InvalidInput),
        ((400, {"error": {"message": "'n' is a letter", "param": None}}), InvalidInput),
        # The sentence repeats the buyer's text.
        ((400, {"error": {"message": "not supported: a boat 'n' `n`"}}), InvalidInput),
    ],
)
async def test_what_is_needed_or_not_named_is_not_left_out(site, reply, raised):
    site.answers("POST", PATH, reply)
    request = GenerationRequest(prompt="a boat 'n' `n`", aspect_ratio="1:1", resolution="1K")
    with pytest.raises(raised):
        await site.submit(request)
    assert len(site.seen) == 1


async def test_a_refusal_that_goes_on_without_the_field_is_not_remembered(site):
    moderated = (400, {"error": {"code": "moderation_blocked"}})
    site.answers("POST", PATH, by_litellm("response_format"), moderated, GOOD)
    seller = site.seller()
    with pytest.raises(ContentPolicy):
        await seller.submit()
    await seller.submit()
    await seller.provider.close()
    assert "response_format" in site.seen[-1].json


@pytest.mark.parametrize(
    ("code", "is_left_out"), [("unknown_parameter", True), ("invalid_value", False)]
)
async def test_openais_quality_is_left_out_only_where_the_model_has_none(site, code, is_left_out):
    """A quality that is left out may be the most expensive."""
    site.answers("POST", PATH, by_param("quality", code), GOOD)
    endpoint, sold = on_sale(gateway_openai, openai_api_key="sk")["openai-image"]
    provider = attrs.evolve(sold, outbound=Outbound(f"{site.url}/v1"))
    try:
        if is_left_out:
            await provider.submit(site.request, PlainJob(endpoint))
            assert "quality" not in site.seen[-1].json
        else:
            with pytest.raises(AccountProblem):
                await provider.submit(site.request, PlainJob(endpoint))
            assert len(site.seen) == 1
    finally:
        await provider.close()
