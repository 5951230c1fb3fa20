"""Purchases with each vendor's own client, as its adapter makes them, and the client's errors.

Each function gets the API's address and returns a picture's bytes, its link, or a text.
"""

import base64

import azure.ai.documentintelligence
import azure.core.exceptions
import fal_client
import fal_client.client
import google.genai
import httpx
import llama_cloud
import mistralai.client
import openai
import replicate
import replicate.exceptions
from azure.core.credentials import AzureKeyCredential

PROMPT = "a boat"


class JobFailed(Exception):
    """The client reports a failed job, without an error of its own."""


def by_openai(url):
    client = openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    answer = client.images.generate(
        model="gpt-image-2", prompt=PROMPT, size="1536x864", quality="medium", output_format="png"
    )
    assert answer.usage.output_tokens_details.image_tokens == answer.usage.output_tokens
    return base64.b64decode(answer.data[0].b64_json)


def by_genai(url, **options):
    types = google.genai.types
    options = types.HttpOptions(
        base_url=url, retry_options=types.HttpRetryOptions(attempts=1), **options
    )
    client = google.genai.Client(api_key="k", http_options=options)
    picture = types.ImageConfig(aspect_ratio="16:9", image_size="2K")
    answer = client.models.generate_content(
        model="gemini-nano-banana-2.1",
        contents=PROMPT,
        config=types.GenerateContentConfig(response_modalities=["IMAGE"], image_config=picture),
    )
    candidate = answer.candidates[0]
    if candidate.content is None:
        raise JobFailed(candidate.finish_reason)
    return candidate.content.parts[0].inline_data.data


def by_genai_beta(url):
    return by_genai(url, api_version="v1beta")


def by_fal(url):
    fal_client.client.QUEUE_URL_FORMAT = f"{url}/"
    client = fal_client.SyncClient(key="k:s")
    job = client.submit("fal-ai/nano-banana-2", arguments={"prompt": PROMPT})
    for event in job.iter_events(interval=0.01):
        assert isinstance(event, (fal_client.Queued, fal_client.InProgress, fal_client.Completed))
    return job.get()["images"][0]["url"]


def by_replicate(url):
    client = replicate.Client(api_token="k", base_url=url)
    job = client.models.predictions.create("black-forest-labs/flux-2-pro", input={"prompt": PROMPT})
    while job.status not in ("succeeded", "failed", "canceled"):
        job.reload()
    if job.status != "succeeded":
        raise JobFailed(job.error)
    return job.output[0]


def by_mistral(url):
    client = mistralai.client.Mistral(api_key="k", server_url=url)
    document = {"type": "document_url", "document_url": "data:application/pdf;base64,AAAA"}
    answer = client.ocr.process(model="mistral-ocr-4-0", document=document, pages="0-1")
    return answer.pages[0].markdown


def by_llama_cloud(url):
    client = llama_cloud.LlamaCloud(api_key="k", base_url=url, max_retries=0)
    file = client.files.create(file=("a.pdf", b"%PDF"), purpose="parse")
    job = client.parsing.create(file_id=file.id, tier="cost_effective", version="latest")
    while (answer := client.parsing.get(job.id, expand=["markdown"])).job.status != "COMPLETED":
        if answer.job.status == "FAILED":
            raise JobFailed(answer.job.error_message)
    return answer.markdown.pages[0].markdown


def by_azure(url):
    client = azure.ai.documentintelligence.DocumentIntelligenceClient(
        url, AzureKeyCredential("k"), retry_total=0
    )
    job = client.begin_analyze_document(
        "prebuilt-layout",
        {"base64Source": "AAAA"},
        pages="1-2",
        output_content_format="markdown",
        polling_interval=0,
    )
    return job.result().content


# Errors of a client for a refused key, and for a failed job.
HTTP_ERRORS = (
    openai.APIStatusError,
    google.genai.errors.ClientError,
    fal_client.FalClientHTTPError,
    httpx.HTTPStatusError,
    replicate.exceptions.ReplicateError,
    mistralai.client.errors.SDKError,
    llama_cloud.APIStatusError,
    azure.core.exceptions.HttpResponseError,
)
