"""A whole gateway with outputs in a bucket: bought, downloaded, expired, and on the disk."""

import asyncio

import pytest

from gateway.outputs import retention
from tests.conftest import PNG, running
from tests.plugins.gateway_bucket.app.conftest import fetch, free_port
from tests.unit.outputs.conftest import listed


@pytest.fixture
def in_bucket(settings, bucket):
    return settings.changed(
        outputs_url=f"s3://{bucket.name}/shop",
        outputs_endpoint=bucket.endpoint,
        outputs_access_key_id="key",
        outputs_secret_access_key="hidden",
    )


async def bought(gateway, payer):
    await gateway.services.payments.cutoff_block()
    body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(20_000)}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    return await gateway.wait((await answer.get_json())["taskId"])


async def test_a_task_shows_a_link_to_the_bucket_itself(in_bucket, bucket, provider, payer, clock):
    async with running(in_bucket, provider, now=clock) as gateway:
        task = await bought(gateway, payer)
        (output,) = task["result"]["outputs"]
        assert output["url"].startswith(bucket.endpoint)
        answer = await fetch(output["url"])
        assert (answer.status, answer.body) == (200, PNG)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        assert headers["content-disposition"] == f'inline; filename="{task["taskId"]}-1.png"'
        assert not (in_bucket.data_dir / "outputs").exists()

        clock.offset_s = 7 * 86_400 + 1
        services = gateway.services
        assert await retention.sweep(services.store, services.output_store, clock()) == 1
        shown = await (await gateway.client.get(f"/api/task/{task['taskId']}")).get_json()
        (output,) = shown["result"]["outputs"]
        assert (shown["status"], output["expired"], output["url"]) == ("completed", True, None)
        assert await listed(services.output_store, clock()) == []


async def test_a_bucket_that_is_down_costs_no_buyer_anything(in_bucket, provider, payer):
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with running(in_bucket.changed(outputs_endpoint=nowhere), provider) as gateway:
        task = await bought(gateway, payer)
        assert len(provider.requests) == 1
        url = task["result"]["outputs"][0]["url"]
        assert url.startswith("http://gateway.test/files/")
        answer = await gateway.client.get(url.removeprefix("http://gateway.test"))
        assert await answer.get_data() == PNG
    async with running(in_bucket, provider) as gateway:  # the bucket is back, the link still works
        answer = await gateway.client.get(url.removeprefix("http://gateway.test"))
        assert await answer.get_data() == PNG


async def test_many_at_once_are_all_kept(in_bucket, provider, payer):
    async with running(in_bucket, provider) as gateway:
        tasks = await asyncio.gather(*(bought(gateway, payer) for _ in range(8)))
        links = [task["result"]["outputs"][0]["url"] for task in tasks]
        answers = await asyncio.gather(*map(fetch, links))
        assert {(answer.status, answer.body) for answer in answers} == {(200, PNG)}
