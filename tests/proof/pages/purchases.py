"""A purchase by click on the pages."""

from tests.proof.pages.browser import Browser

PICTURE, DOCUMENT = "/play/sandbox-image", "/play/document-parser"
PRICE, DOCUMENT_PRICE = 20_000, 10_000  # units


def ask(browser: Browser, prompt: str = "a boat") -> None:
    """Fill in the form for a picture, and ask for its price."""
    browser.find("#field-prompt").send_keys(prompt)
    browser.click("#ask")


def choose_purse(browser: Browser) -> None:
    browser.click("[data-wallet=purse]")
    browser.find("#pay")


def finish(browser: Browser) -> str:
    """Wait for the result, and return the final text."""
    browser.find("#again")
    return browser.text("#flow")


def finish_by_continuing(browser: Browser) -> None:
    """Continue as often as the page asks: the gateway may be slow on a busy machine."""
    is_asked = "document.querySelector('#flow').innerText.includes('Not finished yet')"
    while True:
        browser.click("#flow .primary")
        browser.until(f"document.querySelector('#again') || {is_asked}")
        if not browser.run(f"return {is_asked}"):
            return


def has_picture(browser: Browser) -> bool:
    return browser.until("document.querySelector('.bought img')?.naturalWidth") >= 720
