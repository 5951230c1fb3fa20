"""A gateway's URL has one spelling, in which nothing is disguised."""

import pytest

from gateway_buyer.client import check_url


@pytest.mark.parametrize(
    ("url", "spelling"),
    [
        ("https://EXAMPLE.com:443/", "https://example.com"),
        ("https://a.example:8443/shop/", "https://a.example:8443/shop"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://[2001:db8::1]/a%20b", "https://[2001:db8::1]/a%20b"),
    ],
)
def test_a_url_has_one_spelling(url, spelling):
    assert check_url(url) == spelling


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/ Gateway: https://good.example",
        "https://evil.example/\u2028Gateway:",
        "https://evil.example/\n",
        "https://evil.example/\u3164",
        "https://evil.example/\x1b[2J",
        "https://bücher.example",
        "https://\uff47ood.example",
        "https://good.example\t.evil.example",
    ],
)
def test_a_url_that_a_person_could_misread_is_refused(url):
    with pytest.raises(ValueError, match="in ASCII, without spaces"):
        check_url(url)


@pytest.mark.parametrize("host", ["good.example,evil", "a(b)", "[fe80::1%25eth0]", "a%2eb", "a\\b"])
def test_a_host_has_letters_digits_and_dots(host):
    with pytest.raises(ValueError, match="give a URL such as"):
        check_url(f"https://{host}/x")
