"""A page that is left open stops to poll: each poll would wake a gateway that sleeps while idle."""

# Timers run 300 times as fast, and the test lets the clock jump.
_COUNT_POLLS = """
const timer = window.setTimeout, ask = window.fetch, now = Date.now;
window.setTimeout = (call, ms, ...more) => timer(call, ms / 300, ...more);
window.polls = window.passed = 0;
window.fetch = (...request) => {
  if (request[0] === "/api/health") window.polls += 1;
  return ask(...request);
};
Date.now = () => now() + window.passed;
"""


def test_a_page_without_use_stops_to_poll_until_it_is_used(shop, browser):
    browser.before_each_page(_COUNT_POLLS)
    browser.open(shop.base_url)
    browser.until("window.polls > 2")
    browser.run("window.passed = 6 * 60000")
    # A poll may be on its way.
    browser.run("return new Promise((done) => setTimeout(done, 30000))")
    before = browser.run("return window.polls")
    browser.run("return new Promise((done) => setTimeout(done, 300000))")
    assert browser.run("return window.polls") == before
    browser.press("a")
    browser.until(f"window.polls > {before} + 1")
