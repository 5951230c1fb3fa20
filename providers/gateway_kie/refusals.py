"""What a `code` of kie.ai means, which comes with HTTP status 200; and how a failed task failed.

Its documentation names the codes 401, 402, 404, 422, 429, 433, 455, 500, 501 and 505, and says
of a failed task that it has a `failCode` and a `failMsg`, without a list of them.
"""

from typing import Any

from gateway import (
    AccountProblem,
    Answer,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    NotAccepted,
    RateLimited,
    Transient,
)
from gateway.errors import ProviderError
from gateway.vendors import as_text

OK = 200
NOT_FOUND = 404
UNPROCESSABLE = 422
_MAINTENANCE = 455
_WAIT_S = 10.0  # the window in which kie counts submits
_ACCOUNT = {
    401: "kie.ai does not take the key",
    402: "kie.ai has no credits left",
    403: "kie.ai does not take the key",
    433: "the key's own limit at kie.ai is reached",
    505: "kie.ai has switched the model off",
}
_INPUT = (400, 413, UNPROCESSABLE)
_POLICY = (  # words of a failMsg, in small letters: there is no code for it
    "sensitive",
    "nsfw",
    "content polic",
    "moderation",
    "safety",
    "prohibited",
    "violat",
    "inappropriate",
)


def check_submit(answer: Answer, body: dict[str, Any]) -> None:
    """Raise what the answer to a submit stands for; nothing for a task that was begun."""
    code = body.get("code")
    if code == NOT_FOUND:
        raise AccountProblem("kie.ai does not know the model, or the address is wrong.")
    if isinstance(code, int) and code != OK:
        raise _refusal(code, as_text(body.get("msg")))
    answer.check()


def check_poll(answer: Answer, body: dict[str, Any]) -> None:
    """Raise what the answer to a question about a task stands for; nothing for a success."""
    code = body.get("code")
    if NOT_FOUND in (code, answer.status):
        raise HandleLost("kie.ai does not know its own task.")
    if code in _INPUT:
        raise Transient(f"kie.ai answers with code {code}.")  # to a question about a task
    if isinstance(code, int) and code != OK:
        raise _refusal(code, as_text(body.get("msg")))
    answer.check_poll()


def failure(task: dict[str, Any]) -> ProviderError:
    """Return the error that a task with state `fail` ended with."""
    message = as_text(task.get("failMsg")).lower()
    code = str(task.get("failCode") or "")
    if any(word in message for word in _POLICY):
        return ContentPolicy("The provider's filter refused the prompt or its picture.")
    if code.isdecimal() and int(code) in _INPUT:
        return InvalidInput("The provider cannot work with this input.")
    return JobFailed(f"kie.ai's task failed with code {code[:20] or 'none'}.")


def _refusal(code: int, message: str) -> ProviderError:
    if code in _ACCOUNT:
        return AccountProblem(f"{_ACCOUNT[code].capitalize()} (code {code}).")
    if code in _INPUT:
        is_policy = any(word in message.lower() for word in _POLICY)
        policy = ContentPolicy("The provider's filter refused the prompt.")
        return policy if is_policy else InvalidInput("The provider cannot work with this input.")
    if code == 429:  # noqa: PLR2004 - the code that HTTP has for it too
        return RateLimited("kie.ai asks to wait.", retry_after_s=_WAIT_S)
    if code == 501:  # noqa: PLR2004 - "Generation Failed", not HTTP's "Not Implemented"
        return JobFailed("kie.ai's task failed.")
    if code == _MAINTENANCE:
        return NotAccepted("kie.ai is under maintenance, and takes no tasks.")
    return Transient(f"kie.ai answers with code {code}.")
