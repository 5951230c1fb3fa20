"""The ways in which a purchase fails. Each message is for the buyer."""

from typing import ClassVar


class BuyError(Exception):
    """Base class; `exit_code` is the command's."""

    exit_code: ClassVar[int] = 1


class NotBought(BuyError):
    """No payment was made, or the gateway states that it took none."""


class AlreadySigned(NotBought):
    """Another run has signed the same purchase, so this one sent nothing."""


class GenerationFailed(BuyError):
    """The gateway took the payment and the generation failed."""

    exit_code = 3


class Unfinished(BuyError):
    """Paid or possibly paid, but the result is not saved. The purchase can be continued."""

    exit_code = 4


class Unanswered(BuyError):
    """A request without a conclusive response. The same request may be sent again."""

    def __init__(self, sentence: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class Unreachable(Unanswered):
    """There was no connection, so the request was not sent."""
