"""Maps kie.ai's error codes, which come with HTTP status 200, and failed tasks to errors.

The documentation lists the codes 401, 402, 404, 422, 429, 433, 455, 500, 501 and 505. A failed task
has a `failCode` and a `failMsg`, whose values are not documented.
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
_NO_MODEL = 505
# The window in which kie.ai counts submits.
_WAIT_S = 10.0
_ACCOUNT = {
    401: "kie.ai does not take the key",
    402: "kie.ai has no credits left",
    403: "kie.ai does not take the key",
    433: "the key's own limit at kie.ai is reached",
    _NO_MODEL: "kie.ai has switched the model off",
}
_INPUT = (400, 413, UNPROCESSABLE)
# Words in a failMsg, in lower case with spaces for "_"; kie.ai has no code for refused content. An
# unrecognised refusal is submitted four times, and perhaps billed as often.
_POLICY = (
    "sensitive",
    "nsfw",
    "polic",
    "moderation",
    "safety",
    "prohibited",
    "violat",
    "inappropriate",
    "blocked",
    "filter",
    "flagged",
)


def check_submit(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a submit's response means, if any."""
    code = body.get("code")
    if code == NOT_FOUND:
        raise AccountProblem(
            "kie.ai does not know the model, or the address is wrong.", scope="model"
        )
    if isinstance(code, int) and code != OK:
        raise _refusal(code, as_text(body.get("msg")))
    answer.check()


def check_poll(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a poll's response means, if any."""
    code = body.get("code")
    if NOT_FOUND in (code, answer.status):
        raise HandleLost("kie.ai does not know its own task.")
    if code in _INPUT:
        # A poll contains no input of the buyer, so this says nothing about the task.
        raise Transient(f"kie.ai answers with code {code}.")
    if isinstance(code, int) and code != OK:
        raise _refusal(code, as_text(body.get("msg")))
    answer.check_poll()


def task_error(task: dict[str, Any]) -> ProviderError:
    """Return the error that a task with state `fail` ended with."""
    code = str(task.get("failCode") or "")
    if _is_policy(f"{code} {as_text(task.get('failMsg'))}"):
        return ContentPolicy("The provider's filter refused the prompt or its picture.")
    if code.isdecimal() and int(code) in _INPUT:
        return InvalidInput("The provider cannot work with this input.")
    return JobFailed(f"kie.ai's task failed with code {code[:20] or 'none'}.")


def _is_policy(text: str) -> bool:
    words = text.lower().replace("_", " ")
    return any(word in words for word in _POLICY)


def _refusal(code: int, message: str) -> ProviderError:
    if code in _ACCOUNT:
        text = f"{_ACCOUNT[code].capitalize()} (code {code})."
        return AccountProblem(text, scope="model" if code == _NO_MODEL else "vendor")
    if code in _INPUT:
        policy = ContentPolicy("The provider's filter refused the prompt.")
        invalid = InvalidInput("The provider cannot work with this input.")
        return policy if _is_policy(message) else invalid
    if code == 429:  # noqa: PLR2004 - the code that HTTP has for it too
        return RateLimited("kie.ai asks to wait.", retry_after_s=_WAIT_S)
    if code == 501:  # noqa: PLR2004 - "Generation Failed", not HTTP's "Not Implemented"
        return JobFailed("kie.ai's task failed.")
    if code == _MAINTENANCE:
        return NotAccepted("kie.ai is under maintenance, and takes no tasks.")
    return Transient(f"kie.ai answers with code {code}.")
