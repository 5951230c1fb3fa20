"""A plugin that calls a vendor on the test's own port: by jobs, directly, and idempotently.

It is on the path of a real `gateway serve`; see test_killed_jobs.py.
"""

import os

from gateway import Endpoint, Handle, Outbound, Pending, Result, Traits, hookimpl, usdc


class Vendor:
    """One way to call the vendor; `kind` is its path."""

    def __init__(self, kind, **traits):
        self.name = kind
        self.traits = Traits(**traits)
        self.api = Outbound(f"{os.environ['VENDOR_URL']}/{kind}")

    async def submit(self, request, job):
        answer = await self.api.request("POST", "/submit", json={"task": job.task_id})
        answer.check()
        body = answer.json()
        return Handle(id=body["id"]) if "id" in body else Result(text=body["text"])

    async def close(self):
        await self.api.close()


class Jobs(Vendor):
    async def poll(self, handle, job):
        answer = await self.api.request("GET", f"/jobs/{handle.id}")
        answer.check()
        body = answer.json()
        return Result(text=body["text"]) if "text" in body else Pending(poll_after_s=0.2)


@hookimpl
def register_endpoints(register, settings):
    for provider in (Jobs("jobs"), Vendor("billed"), Vendor("again", idempotent_submit=True)):
        register(
            Endpoint(
                slug=provider.name,
                title="A text",
                description="A text.",
                model="vendor-1",
                provider=provider.name,
                capability="document-parsing",
                price_units=usdc("0.02"),
            ),
            provider,
        )
