"""Helpers for adapters of vendors' APIs; adapters import these names from `gateway.vendors`."""

from gateway_vendors.answer import Answer
from gateway_vendors.client import Outbound
from gateway_vendors.documents import (
    DocumentParser,
    DocumentSettings,
    answer_schema,
    attached_file,
    base64_text,
    check_job,
    document_endpoint,
    media_type,
    page_cost_micros,
    paid_pages,
    read_json,
    schema_of,
)
from gateway_vendors.json_fields import (
    as_number,
    as_object,
    as_text,
    blamed_fields,
    job_urls,
    json_object,
)
from gateway_vendors.models import (
    Model,
    edit_endpoint,
    model_endpoint,
    models_on_sale,
    picture_endpoint,
)
from gateway_vendors.pictures import PictureLimits, data_uri, picture_size, size_like
from gateway_vendors.settings import base_url, limit_or_none, model_name

__all__ = [
    "Answer",
    "DocumentParser",
    "DocumentSettings",
    "Model",
    "Outbound",
    "PictureLimits",
    "answer_schema",
    "as_number",
    "as_object",
    "as_text",
    "attached_file",
    "base64_text",
    "base_url",
    "blamed_fields",
    "check_job",
    "data_uri",
    "document_endpoint",
    "edit_endpoint",
    "job_urls",
    "json_object",
    "limit_or_none",
    "media_type",
    "model_endpoint",
    "model_name",
    "models_on_sale",
    "page_cost_micros",
    "paid_pages",
    "picture_endpoint",
    "picture_size",
    "read_json",
    "schema_of",
    "size_like",
]
