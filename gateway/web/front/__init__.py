"""Middleware and helpers that every request passes, and the types of ASGI."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Coroutine[Any, Any, Message]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]
