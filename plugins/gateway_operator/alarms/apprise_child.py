"""The child process that sends messages by Apprise. It imports nothing of the gateway.

Reads one JSON object from standard input: `limit_s`, and `letters` with `url`, `title`, `body` and
`kind`. Prints one JSON line per letter: its index, and None or an error without the URL. Letters
that take longer than `limit_s` seconds are not reported.
"""

import json
import logging
import os
import sys
import threading


def main() -> None:
    """Send all letters in parallel, and exit even if some hang."""
    order = json.load(sys.stdin)
    # Apprise's log lines may quote a URL, which contains a password.
    logging.disable(logging.CRITICAL)
    lock = threading.Lock()

    def send(number: int, letter: dict[str, str]) -> None:
        try:
            problem = notify(letter)
        except Exception as error:  # noqa: BLE001 - one of 130 services may raise anything
            problem = f"It failed: {type(error).__name__}."
        with lock:
            print(json.dumps([number, problem]), flush=True)  # noqa: T201 - the answer

    threads = [
        threading.Thread(target=send, args=(number, letter), daemon=True)
        for number, letter in enumerate(order["letters"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(order["limit_s"])
    with lock:
        os._exit(0)


def notify(letter: dict[str, str]) -> str | None:
    """Send one letter; return None or an error."""
    from apprise import Apprise, AppriseAsset  # noqa: PLC0415 - slow, and it may be missing

    # Keep nothing on disk.
    asset = AppriseAsset(storage_mode="memory", async_mode=False)
    service = Apprise.instantiate(letter["url"], asset=asset)
    if service is None:
        return "Apprise does not know such an address."
    apprise = Apprise(asset=asset)
    apprise.add(service)
    is_sent = apprise.notify(
        body=letter["body"], title=letter["title"], notify_type=letter["kind"], body_format="text"
    )
    return None if is_sent else "The service rejected it."


if __name__ == "__main__":
    main()
