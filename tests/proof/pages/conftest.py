"""Three shops, one window of Chromium and one copy of frontend/ for all tests of the pages."""

import contextlib
from pathlib import Path

import pytest

from tests.proof.pages.browser import missing, open_browser, open_gateway, open_shop
from tests.proof.pages.building import copy_frontend
from tests.proof.process.gateway_process import install_plugin

# An offer that fails, and enough others for a page of rows.
FAILS = """
from gateway import Choice, ContentPolicy, Endpoint, PriceStep, hookimpl, usdc

class Provider:
    name = "fails"

    async def submit(self, request, job):
        raise ContentPolicy("The vendor refuses this prompt.")

@hookimpl
def register_endpoints(register, settings):
    endpoint = Endpoint(slug="fails", title="Fails", description="It fails.", model="m",
                        provider="fails", capability="text-to-image", price_units=usdc("0.02"))
    provider = Provider()
    register(endpoint, provider)
    for number in range(44):
        kind = ("text-to-image", "image-editing", "document-parsing")[number % 3]
        steps = (PriceStep(price_units=usdc("0.24"), resolution="4K"),)
        offer = Endpoint(
            slug=f"offer-{number}", title=f"Model {number} of a vendor",
            description="It makes one.",
            model=f"vendor/model-{number}", provider="fails", capability=kind,
            price_units=usdc("0.08"), price_steps=() if number % 3 == 2 else steps,
            resolution=Choice() if number % 3 == 2 else Choice(values=("1K", "4K"), default="1K"),
            required_fields=("prompt", *(("fileBase64", "fileName") if number % 3 else ())),
            file_extensions=() if number % 3 == 0 else (".png",),
        )
        register(offer, provider)
"""

# A click in Chromium costs seconds of CPU. `make test` makes these walks, and those that need no
# browser; `make proof` makes all.
SHORT_WALKS = {
    "test_access_in_chromium": {
        "test_codes_are_set_up_and_asked_for_without_a_script",
        "test_a_form_of_a_neighbour_is_refused_though_it_carries_the_cookie",
    },
    "test_accessibility": {
        "test_every_step_of_a_purchase[light]",
    },
    "test_any_wallet_in_chromium": {
        "test_a_transfer_by_qr_code_is_found_and_buys",
    },
    "test_edit_by_click": {"test_the_sample_picture_is_shown_edited_and_shown_again"},
    "test_extract_by_click": {"test_the_json_of_a_schema_is_shown_as_it_is"},
    "test_in_chromium": {
        "test_a_picture_is_bought_by_click_with_the_purse",
        "test_every_wallet_is_listed_and_the_chosen_one_signs_what_was_shown",
        "test_a_reload_before_the_answer_sends_the_same_payment_and_pays_once",
        "test_without_an_offer_the_page_says_why_and_how_to_pay",
    },
    "test_models_by_click": {
        "test_a_picture_is_compared_with_the_one_that_was_sent[image-upscaling-600]"
    },
    "test_operator_pages": {
        "test_a_phone_scrolls_down_only_and_its_buttons_are_large_enough[/admin?range=30d]",
        "test_without_script_the_page_is_complete[/admin/refunds]",
        "test_what_others_wrote_stays_text_and_the_policy_is_kept[/admin/tasks]",
        "test_a_refund_is_decided_without_a_script_and_each_step_fits_a_phone",
        "test_the_session_of_a_shop_on_another_port_is_not_taken_for_ours",
    },
    "test_pages_in_chromium": {
        "test_a_document_is_shown_before_it_is_bought_and_its_text_stays_text",
        "test_without_javascript_everything_is_there_but_the_wallet",
        "test_a_phone_of_400_pixels_scrolls_in_one_direction_only[/play/sandbox-image]",
        "test_dark_is_dark",
        "test_uvicorn_sells_by_click_too",
    },
    "test_purchases_in_chromium": {
        "test_a_purchase_without_an_answer_survives_its_tab_and_pays_once",
        "test_a_failed_task_names_the_refund_and_whom_to_ask",
        "test_a_link_fills_the_form_and_does_nothing_else",
    },
    "test_refused_in_chromium": {
        "test_a_payment_that_took_nothing_is_not_called_perhaps_lost",
    },
    "test_shop_in_chromium": {
        "test_the_total_is_that_of_the_chosen_options_and_the_one_that_is_paid",
    },
    "test_wallets_in_chromium": {
        "test_a_wallet_that_stays_on_another_chain_signs_nothing",
    },
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the walks that `make test` leaves out as `full`."""
    for item in items:
        short = SHORT_WALKS.get(item.path.stem)
        if (
            item.path.parent == Path(__file__).parent
            and short is not None
            and item.name not in short
        ):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def _needed():
    lacks = missing()
    if lacks:
        pytest.skip(lacks)


@pytest.fixture(scope="session")
def shop(_needed, tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@pytest.fixture(scope="session")
def other_shop(_needed, tmp_path_factory):
    """A shop on uvicorn, with an offer that fails among 49.

    Its URL has `localhost`, because browsers create no passkeys for 127.0.0.1.
    """
    site = tmp_path_factory.mktemp("site")
    install_plugin(site, "gateway_fails", FAILS)
    folder = tmp_path_factory.mktemp("other-shop")
    facts = {"server": "uvicorn", "contact_email": "me@example.com"}
    with contextlib.ExitStack() as stack:
        # The gateway takes this path along. Later tests of this process must not see the plugin.
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(site))
            opened = stack.enter_context(open_shop(folder, host="localhost", **facts))
        yield opened


@pytest.fixture(scope="session")
def lone_shop(shop, tmp_path_factory):
    """A shop of one offer, on the chain of `shop`."""
    folder = tmp_path_factory.mktemp("lone-shop")
    with open_gateway(folder, shop.chain, sandbox="false") as opened:
        yield opened


@pytest.fixture(scope="session")
def frontend(tmp_path_factory):
    """A copy of frontend/ with its packages; skips without Node or the registry."""
    return copy_frontend(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def axe(frontend) -> str:
    """The script of axe-core."""
    return (frontend / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="session")
def window(_needed):
    with open_browser() as opened:
        yield opened


@pytest.fixture
def browser(window):
    yield window
    window.reset()
