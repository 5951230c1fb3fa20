"""The samples in the shop are what the bundled providers make."""

import json

import gateway_documents
import gateway_sandbox_image
from gateway import GenerationRequest
from gateway.domain import Attachment
from gateway.web.routes.files import static_folder
from gateway_demo.sample import SCHEMA, sample_pdf
from gateway_shop import samples


def test_the_sample_endpoints_are_those_of_the_bundled_providers():
    bundled = (
        gateway_sandbox_image.ENDPOINT,
        gateway_sandbox_image.EDIT,
        gateway_documents.ENDPOINT,
        gateway_documents.EXTRACT,
    )
    assert {endpoint.slug for endpoint in bundled} == set(samples._BUILT)


async def test_the_shown_document_is_what_the_parser_makes_of_the_sample():
    parser = gateway_documents.DocumentParser()
    try:
        file = Attachment(name="document.pdf", data=sample_pdf())
        made = (await parser.submit(GenerationRequest(attachment=file), None)).text
    finally:
        await parser.close()
    sample = (static_folder() / "pages" / "document-sample.md").read_text()
    assert made.startswith(sample)


async def test_the_shown_data_is_what_is_extracted_from_the_sample():
    extractor = gateway_documents.DocumentExtractor(gateway_documents.DocumentParser())
    try:
        file = Attachment(name="document.pdf", data=sample_pdf())
        request = GenerationRequest(prompt=json.dumps(SCHEMA), attachment=file)
        made = json.loads((await extractor.submit(request, None)).text)
    finally:
        await extractor.close()
    sample = json.loads((static_folder() / "pages" / "extraction-sample.json").read_text())
    assert sample == made
