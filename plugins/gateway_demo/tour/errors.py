"""The error of the demo."""


class DemoError(Exception):
    """The demo cannot go on.

    The message is a sentence for the person at the terminal. `log` has the last lines of the
    process that failed.
    """

    def __init__(self, sentence: str, *, log: str = "") -> None:
        super().__init__(sentence)
        self.log = log
