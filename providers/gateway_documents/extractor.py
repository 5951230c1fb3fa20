"""The provider `extraction`: JSON from documents by fixed rules, for trying out the gateway."""

from typing import ClassVar

import attrs

import gateway
from gateway_documents.provider import DocumentParser


@attrs.define
class DocumentExtractor:
    """Parses a document, and finds data in its Markdown, in the parser's sandbox."""

    traits: ClassVar[gateway.Traits] = gateway.Traits(idempotent_submit=True, limits_pages=True)
    parser: DocumentParser
    name: str = "extraction"

    async def validate(
        self, request: gateway.GenerationRequest, endpoint: gateway.Endpoint
    ) -> None:
        """Refuse a file that the parser refuses."""
        await self.parser.validate(request, endpoint)

    async def submit(self, request: gateway.GenerationRequest, job: gateway.Job) -> gateway.Result:
        """Parse the file and extract data from it; cancelling kills the child process."""
        parsed = await self.parser.submit(request, job)
        return gateway.Result(text=await self.parser.extract(request.prompt, parsed.text or ""))

    async def close(self) -> None:
        """End the processes of the parser; the next document starts new ones."""
        await self.parser.close()
