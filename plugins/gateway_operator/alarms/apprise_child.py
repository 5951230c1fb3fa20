"""The program that tells letters by Apprise. It runs alone, and imports nothing of the gateway.

It reads one JSON object from its standard input: `limit_s`, and `letters` with `url`, `title`,
`body` and `kind`. For each letter it prints one JSON line: its number, and None or what is wrong.
An answer names no address. What has not ended within `limit_s` seconds is not told.
"""

import json
import logging
import os
import sys
import threading


def main() -> None:
    """Tell all letters side by side, and end without waiting for what hangs."""
    order = json.load(sys.stdin)
    # Apprise's own lines may quote an address, which holds a password.
    logging.disable(logging.CRITICAL)
    lock = threading.Lock()

    def tell(number: int, letter: dict[str, str]) -> None:
        try:
            problem = notify(letter)
        except Exception as error:  # noqa: BLE001 - one of 130 services may raise anything
            problem = f"It failed: {type(error).__name__}."
        with lock:
            print(json.dumps([number, problem]), flush=True)  # noqa: T201 - the answer

    threads = [
        threading.Thread(target=tell, args=(number, letter), daemon=True)
        for number, letter in enumerate(order["letters"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(order["limit_s"])
    with lock:
        os._exit(0)


def notify(letter: dict[str, str]) -> str | None:
    """Tell one letter; return None, or what is wrong."""
    from apprise import Apprise, AppriseAsset  # noqa: PLC0415 - slow, and it may be missing

    # Nothing is kept on the disk.
    asset = AppriseAsset(storage_mode="memory", async_mode=False)
    service = Apprise.instantiate(letter["url"], asset=asset)
    if service is None:
        return "Apprise does not know such an address."
    apprise = Apprise(asset=asset)
    apprise.add(service)
    is_told = apprise.notify(
        body=letter["body"], title=letter["title"], notify_type=letter["kind"], body_format="text"
    )
    return None if is_told else "The service did not take it."


if __name__ == "__main__":
    main()
