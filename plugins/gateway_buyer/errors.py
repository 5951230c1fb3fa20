"""The ways in which a purchase ends without a saved result; each message is for the buyer."""

from typing import ClassVar


class BuyError(Exception):
    """Base of them; `exit_code` is the command's."""

    exit_code: ClassVar[int] = 1


class NotBought(BuyError):
    """No payment was made, or the gateway says that it took none."""


class GenerationFailed(BuyError):
    """The gateway took the payment and the generation failed."""

    exit_code = 3


class Unfinished(BuyError):
    """The payment was or may have been made, and the result is not here; it can be continued."""

    exit_code = 4


class Unanswered(BuyError):
    """One request got no answer that settles anything; it may be sent again as it was."""

    def __init__(self, sentence: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s
