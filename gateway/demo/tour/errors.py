"""What may go wrong in the demo."""


class DemoError(Exception):
    """The demo cannot go on.

    The message is a sentence for whoever started it; `log` the last lines of the process at fault.
    """

    def __init__(self, sentence: str, *, log: str = "") -> None:
        super().__init__(sentence)
        self.log = log
