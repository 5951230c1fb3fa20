"""The error of the demo."""


class DemoError(Exception):
    """The demo cannot continue.

    The message is for the person at the terminal. `log` has the last lines of the failed process.
    """

    def __init__(self, sentence: str, *, log: str = "") -> None:
        super().__init__(sentence)
        self.log = log
