"""Parts: a plugin's routes, background work, checks and events in a running gateway."""

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs


class EventType(enum.StrEnum):
    """The type of an event."""

    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    REFUND_SENT = "refund.sent"


@attrs.frozen(kw_only=True)
class Event:
    """One event, recorded in the same write as the change that it reports."""

    id: int
    type: EventType
    task_id: str
    # Unix seconds.
    at: float


Take = Callable[[Any, Sequence[Event]], None]
"""`take(db, events)` runs in the write that deletes the events.

It writes to the plugin's own tables, and does nothing that a rollback cannot undo. An error rolls
both back, and the same events come again. The database may also retry a write.
"""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EventReader:
    """The events that a part reads, and the function that takes them.

    Each event is kept, even across restarts, until the write with `take` is durable. Events may
    come in any order.
    """

    take: Take
    types: Sequence[EventType] = tuple(EventType)
    # Only of tasks whose buyer named a `callbackUrl`.
    only_with_callback: bool = False
    # Called after events were taken, for example to wake a worker; must not block.
    on_taken: Callable[[], None] | None = None


Step = Callable[[], Awaitable[None]]


def _to_tuple(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(paths)


@attrs.frozen(kw_only=True)
class Mount:
    """Paths that a plugin answers.

    The gateway imports `blueprint` in a thread when the first request comes, and calls it without
    arguments. It returns a Quart `Blueprint`. While an import fails, requests are answered 500, and
    the next one tries again.
    """

    # `/mcp` is that path alone, and `/admin/*` is `/admin` and everything below it.
    paths: Sequence[str] = attrs.field(converter=_to_tuple)
    # The function that returns the blueprint, such as `gateway_mcp.routes:make_blueprint`.
    blueprint: str
    # The most bytes of a POST's body, or a function that returns them for each request.
    body_bytes: int | Callable[[], int] = 64 * 1024
    # How many requests each client may send here, such as `60/60s`; empty for no limit.
    limit: str = ""
    # Whether web pages of any origin may send requests here (CORS).
    is_public: bool = False

    @property
    def limit_name(self) -> str:
        """The name under which the requests are counted."""
        return f"mount {self.paths[0]}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Discovery:
    """Entries in the documents by which agents find the gateway. Paths become full addresses."""

    # Entries of `endpoints` in the manifest: name to path.
    manifest: Mapping[str, str] = attrs.field(factory=dict)
    # Services in the registration file of ERC-8004: name to path.
    services: Mapping[str, str] = attrs.field(factory=dict)
    # The path of the gateway's OpenAPI document.
    openapi: str = ""
    # Lines of `/llms.txt`: path to a phrase about it.
    guide: Mapping[str, str] = attrs.field(factory=dict)
    # Pages in `/sitemap.xml`, for people.
    pages: Sequence[str] = ()
    # Paths that `/robots.txt` closes to crawlers.
    closed_paths: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class Check:
    """The result of one check of `/api/ready`.

    `stops` names the offers that are off sale while the check fails: `everything`, `paid routes`,
    `x402`, slugs, or `nothing`. `summary` is a fixed sentence that any client may read. `problem`
    may quote a vendor or an RPC endpoint, so only the operator reads it.
    """

    name: str
    ok: bool
    stops: str
    summary: str
    problem: str = ""

    def for_public(self) -> dict[str, Any]:
        """Return the row of `/api/ready`."""
        return self._make_row(self.summary)

    def for_operator(self) -> dict[str, Any]:
        """Return the row of `/admin/ready`."""
        return self._make_row(self.problem or self.summary)

    def _make_row(self, problem: str) -> dict[str, Any]:
        shown = None if self.ok else problem
        return {"name": self.name, "ok": self.ok, "stops": self.stops, "problem": shown}


@attrs.frozen(kw_only=True)
class Condition:
    """A state that needs the operator, shown on the operator's pages.

    With `raises_alarm`, the alarms report its beginning and its end.
    """

    # Such as `backup_old`, in lower case, and the key or slug it is about, if any.
    name: str
    subject: str = ""
    # `bad` is urgent, `warn` is soon, `note` is a notice.
    level: Literal["bad", "warn", "note"]
    title: str
    text: str
    # The one thing to do, as a sentence.
    action: str
    # The page with the details, and the label of its link.
    href: str = "/admin/system"
    button: str = "Details"
    raises_alarm: bool = True


Urgency = Literal["notice", "soon", "urgent"]
AlarmEvent = Literal["raised", "again", "ended", "digest", "test"]


@attrs.frozen(kw_only=True)
class Alarm:
    """One message to the operator. It names no key, no prompt and no payer."""

    # `raised`: it began, or became urgent; `again`: it has been urgent for another day.
    event: AlarmEvent
    # Such as `gas`, or `off_sale:openai`: what `gateway alarms mute` takes.
    key: str
    urgency: Urgency
    # A few words.
    title: str
    # The finding, and its consequences.
    text: str
    # The action to take; may be empty.
    todo: str
    # The page of this gateway for that action.
    link: str
    # Unix seconds; `ended_at` is None while it lasts.
    since: float
    ended_at: float | None = None
    # Name of the sending gateway.
    gateway: str = ""


class Callbacks(Protocol):
    """Sends buyers the events of their tasks. At most one part of a gateway has it."""

    @property
    def is_offered(self) -> bool:
        """Whether documents describe `callbackUrl`."""
        ...

    def check(self, url: str) -> None:
        """Raise `ValidationError` for a `callbackUrl` to which no event is sent."""
        ...

    def secret_of(self, task_id: str) -> str:
        """Return the secret by which a receiver verifies the events of a task."""
        ...

    async def undelivered(self, task_id: str) -> Sequence[tuple[str, int]]:
        """Return the type, and the failed attempts, of each event that waits for its receiver."""
        ...


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Part:
    """One part of a running gateway. All fields but the name are optional.

    Parts start in the order of registration, the core's first, and close in the opposite order. A
    `SettingsError` in `start` stops the start of the gateway; after another error, or half a
    minute, it starts without the part. `begin` and `close` have ten seconds. An error in any step
    is logged, and the other parts go on.
    """

    name: str
    # Before the first response.
    start: Step | None = None
    # Once every part has started, still before the first response: resume waiting work.
    begin: Step | None = None
    # After the first response: slow imports, and requests to the chain.
    warm: Step | None = None
    warm_s: float | None = 60.0
    # A task that runs after `warm` and is cancelled at the end.
    run: Step | None = None
    # Repeated every `every_s` seconds, and first after that time. An error is logged. With
    # `only_leader`, one of several machines does it.
    work: Step | None = None
    every_s: float = 60.0
    only_leader: bool = False
    # After the process stood still, as in a suspended machine, or its clock jumped: renew
    # connections, and read again what other machines may have changed. Sales wait for it, and a
    # plugin's has ten seconds.
    resume: Step | None = None
    # After sales have stopped: finish work in progress within `drain_s` seconds. None is no
    # limit, for parts with a limit of their own.
    drain: Step | None = None
    drain_s: float | None = 10.0
    # At the end, also after a failed start: release resources.
    close: Step | None = None
    mounts: Sequence[Mount] = ()
    discovery: Discovery = attrs.field(factory=Discovery)
    # More rows of `/api/ready`, and more conditions on the operator's pages. A row only reports:
    # its `stops` is for proxies and the operator, and stops no sale.
    checks: Callable[[], Awaitable[Iterable[Check]]] | None = None
    conditions: Callable[[], Awaitable[Iterable[Condition]]] | None = None
    # Work that cannot wait for the next request, as short words such as `webhooks`; none if the
    # process may end. It is asked every few seconds, and only once no request has come for a while
    # (GATEWAY_EXIT_WHEN_IDLE), so it may also begin work that is due before the end.
    pending: Callable[[], Awaitable[Iterable[str]]] | None = None
    # The events of tasks that the part reads, under the part's name.
    events: EventReader | None = None
    callbacks: Callbacks | None = None
    # The gateway fills these in: the plugin's name, and whether the gateway starts without the
    # part if its `start` fails.
    plugin: str = ""
    is_optional: bool = False
