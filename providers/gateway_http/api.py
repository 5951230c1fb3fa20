"""The provider: sends the declared request, polls its job, and takes the declared result."""

import asyncio
import json
import re
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import attrs
import msgspec

from gateway import (
    AccountProblem,
    Answer,
    Endpoint,
    GenerationRequest,
    Handle,
    HandleLost,
    InvalidInput,
    Job,
    JobFailed,
    Link,
    LinkDead,
    Outbound,
    Output,
    Pending,
    Result,
    ResultMissing,
    ResultUnusable,
    SubmitUncertain,
    Traits,
)
from gateway.vendors import as_number, base64_text, media_type
from gateway_http.declarations import Declaration, JobPlaces, ResultPlace
from gateway_http.shapes import filled, find, with_secrets

MAX_ANSWER_BYTES = 128_000_000
MAX_TEXT_CHARS = 5_000_000
_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,199}")
_HEALTH_S = 10.0
_SEEDS = 2**31
_REFUSED = range(400, 500)
# Their meaning is that of every vendor: key or credit, model, waiting.
_PLAIN = (401, 402, 403, 404, 405, 408, 409, 425, 429)
_NO_KEY, _GONE, _SERVER_ERROR = 401, 404, 500
# Answers of these types are errors or pages, and no file.
_NO_FILES = ("text/html", "application/json")


def _ignore(name: str, value: object) -> None:
    """Note nothing: a sale has no observer."""


def make_provider(slug: str, about: Declaration) -> "HttpApi":
    """Return the provider of one declaration."""
    url = urlsplit(about.request.url)
    path = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    headers = {
        name: with_secrets(f"request.headers.{name}", value)
        for name, value in about.request.headers.items()
    }
    kind = HttpApi if about.job is None else HttpJobs
    return kind(
        name=f"http-{slug}",
        about=about,
        path=path,
        outbound=Outbound(
            f"{url.scheme}://{url.netloc}", headers=headers, max_bytes=MAX_ANSWER_BYTES
        ),
        traits=Traits(
            max_concurrency=about.at_once or None,
            submits_per_minute=about.per_minute,
            idempotent_submit=about.free_to_repeat,
        ),
    )


@attrs.define(kw_only=True)
class HttpApi:
    """An API whose answer has the result.

    Two providers are equal if they send the same requests: `gateway reload` keeps the one that
    works.
    """

    name: str
    # Encoded, because 1, 1.0 and true are equal in Python, and a form's order counts.
    about: Declaration = attrs.field(
        eq=lambda about: msgspec.json.encode(about.technical), repr=False
    )
    path: str
    outbound: Outbound = attrs.field(eq=False, repr=False)
    traits: Traits
    # Observes answers and the values at paths, for `gateway http check`.
    note: Callable[[str, object], None] = attrs.field(default=_ignore, eq=False, repr=False)

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:  # noqa: ARG002 - Provider
        """Refuse a prompt with a text that the operator has ruled out."""
        for text in self.about.refused:
            if text.lower() in request.prompt.lower():
                raise InvalidInput(f"A prompt may not contain {text}.")

    async def submit(self, request: GenerationRequest, job: Job) -> Result | Handle:
        """Send the request once, and take the result from its answer."""
        return await self._result_of(await self._send(request, job))

    async def _send(self, request: GenerationRequest, job: Job) -> Answer:
        asked = self.about.request
        body = self._fill(request, job, await self._encoded_file(request))
        answer = await self.outbound.request(
            asked.method, self.path, timeout_s=job.endpoint.timeout_s, **body
        )
        self.note("answer", answer)
        if answer.status in self.about.invalid:
            raise InvalidInput("The provider cannot work with this input.")
        if answer.status in _REFUSED and answer.status not in _PLAIN:
            raise AccountProblem(f"The API answers with status {answer.status}.", scope="model")
        answer.check()
        return answer

    async def _encoded_file(self, request: GenerationRequest) -> str:
        if request.attachment is None or "file_base64" not in self.about.places:
            return ""
        return await base64_text(request.attachment)

    def _fill(self, request: GenerationRequest, job: Job, encoded: str) -> dict[str, Any]:
        """Return the body as arguments of the request."""
        about, file = self.about, request.attachment
        width, height = about.size_of(request.resolution, request.aspect_ratio)
        # The buyer's own name of the file may identify the buyer.
        name = "" if file is None else f"file{file.extension}"
        values = {
            "prompt": request.prompt,
            "width": width,
            "height": height,
            "seed": secrets.randbelow(_SEEDS - 1),
            "task": f"{job.task_id}-{job.attempt}",
            "file_name": name,
            "file_base64": encoded,
        }
        if about.request.json is not None:
            return {"json": filled(about.request.json, values)}
        fields = filled(about.request.form, values)
        form = {key: ("", _as_text(value).encode(), "text/plain") for key, value in fields.items()}
        if file is not None and about.request.file_field:
            form[about.request.file_field] = (name, file.data, media_type(file))
        return {"files": form}

    def _find(self, content: Any, path: str) -> Any:
        value = find(content, path)
        self.note(path, value)
        return value

    async def _result_of(self, answer: Answer) -> Result:
        """Return the result in a successful answer."""
        place = self.about.result
        if place.kind == "file":
            return _file_of(answer, place)
        return await self._found_result(await answer.submit_json(), place)

    async def _found_result(self, content: Any, place: ResultPlace) -> Result:
        found = self._find(content, place.path)
        if place.kind == "json":
            return await asyncio.to_thread(_json_result, found)
        if not isinstance(found, str) or not found:
            raise ResultMissing
        if place.kind == "text":
            return _text_result(found, place.media_type or "text/plain")
        if place.kind == "link":
            return Result(outputs=(Link(url=found, media_type=place.media_type),))
        try:
            data = await Answer.decoded(found)
        except SubmitUncertain:
            raise ResultUnusable("The result was made, but is not Base64.") from None
        return Result(outputs=(Output(data=data, media_type=place.media_type),))

    async def health(self) -> None:
        """Ask for the declared path, or whether the server answers at all."""
        path = self.about.health
        answer = await self.outbound.request("GET", path or "/", timeout_s=_HEALTH_S)
        if path or answer.status == _NO_KEY or answer.status >= _SERVER_ERROR:
            answer.check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


@attrs.define(kw_only=True)
class HttpJobs(HttpApi):
    """An API that returns a job, which is polled."""

    @property
    def job(self) -> JobPlaces:
        """How to poll a job."""
        job = self.about.job
        if job is None:
            raise TypeError("the declaration has no job")
        return job

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Send the request once, and return its job."""
        content = await (await self._send(request, job)).submit_json()
        found = self._find(content, self.job.id)
        job_id = str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""
        if not _ID.fullmatch(job_id):
            raise SubmitUncertain("The API accepted the request, but named no job.")
        return Handle(id=job_id, facts=self._addresses)

    @property
    def _addresses(self) -> dict[str, str]:
        """Where a job is asked for. The file may have other addresses by the next poll."""
        get = self.about.result.get
        return {"server": self.outbound.base_url, "poll": self.job.poll, "get": get}

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002 - Provider
        """Ask for the job once; take its result once it is done."""
        if handle.facts != self._addresses:
            # Another server might have a job of this id for somebody else.
            raise HandleLost("The job is at an address that the file no longer names.")
        answer = await self._get(self.job.poll, handle)
        if answer.status == _GONE:
            raise HandleLost("The API does not know its own job.")
        answer.check_poll()
        content = await asyncio.to_thread(answer.json)
        state = _as_text(self._find(content, self.job.state))
        if state in self.job.failed:
            raise JobFailed("The API's job failed.")
        if state not in self.job.done:
            return Pending(progress=self._progress_in(content))
        if self.about.result.kind != "file":
            return await self._found_result(content, self.about.result)
        return await self._fetch(handle)

    async def _get(self, path: str, handle: Handle) -> Answer:
        answer = await self.outbound.request("GET", path.replace("{id}", handle.id))
        self.note("answer", answer)
        return answer

    async def _fetch(self, handle: Handle) -> Result:
        answer = await self._get(self.about.result.get, handle)
        if answer.status == _GONE:
            raise LinkDead("The result was made, but cannot be fetched.")
        answer.check_poll()
        return _file_of(answer, self.about.result)

    def _progress_in(self, content: Any) -> float | None:
        number = as_number(self._find(content, self.job.progress)) if self.job.progress else None
        return None if number is None else min(max(number / self.job.progress_of, 0.0), 1.0)


def _file_of(answer: Answer, place: ResultPlace) -> Result:
    """Return the whole answer as a file. A page or an error in JSON is none."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not answer.body:
        raise ResultMissing
    if kind in _NO_FILES and kind != place.media_type:
        raise SubmitUncertain(f"The API answers with {kind} instead of a file.")
    return Result(outputs=(Output(data=answer.body, media_type=place.media_type),))


def _text_result(text: str, kind: str) -> Result:
    if len(text) > MAX_TEXT_CHARS:
        raise ResultUnusable("The text was made, but is longer than what is sold.")
    return Result(text=text, text_media_type=kind)


def _json_result(found: object) -> Result:
    if not isinstance(found, dict):
        raise ResultMissing
    return _text_result(json.dumps(found, ensure_ascii=False), "application/json")


def _as_text(value: object) -> str:
    """Return a value as a form or a list of states has it."""
    return json.dumps(value) if isinstance(value, bool) else "" if value is None else str(value)
