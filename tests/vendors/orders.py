"""Orders with every option of an endpoint, and their submission."""

import itertools

from vendor_site import PlainJob, on_sale

from gateway import GenerationRequest
from gateway.domain import Attachment
from tests.conftest import PNG

_SCHEMA = '{"type": "object", "properties": {"total": {"type": "number"}}}'


def pictures_of(endpoint):
    """A request for each combination of an endpoint's options."""
    sent = Attachment(name="a.png", data=PNG) if "edit" in endpoint.slug else None
    choices = (endpoint.aspect_ratio, endpoint.output_format, endpoint.resolution)
    every = itertools.product(*((None, *choice.values) for choice in choices))
    for ratio, kind, resolution in every:
        yield GenerationRequest(
            prompt="a boat",
            aspect_ratio=ratio,
            output_format=kind,
            resolution=resolution,
            attachment=sent,
        )


def documents_of(endpoint):
    """A request for each kind of file, with and without a number of pages."""
    is_asked = endpoint.capability == "document-extraction"
    prompts = ("What is the total?", _SCHEMA) if is_asked else ("",)
    for name, pages, prompt in itertools.product(("a.pdf", "a.png"), (None, 1, 7), prompts):
        sent = Attachment(name=name, data=b"%PDF-1.4")
        yield GenerationRequest(prompt=prompt, attachment=sent, pages=pages)


async def submit_all(plugin, slugs, requests_of, **settings):
    """Submit every request of the named endpoints; return their outcomes."""
    sold = {slug: offer for slug, offer in on_sale(plugin, **settings).items() if slugs(slug)}
    assert sold
    answers = []
    for endpoint, provider in sold.values():
        job = PlainJob(endpoint)
        answers += [await provider.submit(request, job) for request in requests_of(endpoint)]
        await provider.close()
    assert len(answers) > len(sold)
    return answers


async def orders(fake, plugin, slugs, requests_of, **values):
    """Submit every request of the named endpoints; return what was sent."""
    settings = fake.api.settings(fake.url) | values
    answers = await submit_all(plugin, slugs, requests_of, **settings)
    assert len(fake.submitted) == len(answers)
    return fake.submitted
