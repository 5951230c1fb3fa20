"""What may go wrong with a document, on either side of the process border."""


class Unreadable(ValueError):  # noqa: N818 - it is a fact about the file, not a fault of ours
    """The file cannot be parsed, however often it is tried; the message is for its owner."""


class ParserLost(RuntimeError):  # noqa: N818 - as above
    """The parsing process ended for a reason that is not the document's: worth another try."""
