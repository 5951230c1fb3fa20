"""A model that fal has retired stops no other."""

from gateway.vendors import Outbound
from gateway_fal.models import MODELS
from gateway_fal.queue import Queue


async def test_health_passes_where_the_key_is_taken_and_one_model_is_gone(httpserver):
    httpserver.expect_request("/v1/models/pricing").respond_with_json(
        {"error": {"type": "not_found", "message": "Endpoint not found"}}, status=404
    )
    outbound = Outbound(httpserver.url_for("").rstrip("/"))
    queue = Queue(outbound, platform=outbound, models={model.slug: model for model in MODELS})
    await queue.health()
    await queue.close()
