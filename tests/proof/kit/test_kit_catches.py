"""The kit finds expensive mistakes, and explains how to fix them."""

from pathlib import Path

import attrs
import pytest

from tests.proof.kit.conftest import report_of

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "gateway-acme"


@attrs.frozen
class Mistake:
    """One mistake in a line of the example, the scene that must fail, and its message."""

    right: str
    wrong: str
    scene: str
    says: str
    also: dict = attrs.field(factory=dict)  # what else is written otherwise

    def made_in(self, text: str) -> str:
        for right, wrong in ({self.right: self.wrong} | self.also).items():
            assert text.count(right) == 1, f"the example has changed: {right}"
            text = text.replace(right, wrong)
        return text


MISTAKES = {
    "billed_four_times": Mistake(
        "body = await answer.submit_json()",
        "if answer.status >= 500:\n"
        '            raise __import__("gateway").NotAccepted("down")\n'
        "        body = await answer.submit_json()",
        "test_a_submit_that_is_answered_with_an_error_of_the_server[error 502]",
        "may respond so after the order was taken and billed",
    ),
    "trying_again_by_itself": Mistake(
        "body = await answer.submit_json()",
        "if answer.status >= 500:\n"
        "            return await self.submit(request, job)\n"
        "        body = await answer.submit_json()",
        "test_a_submit_that_is_answered_with_an_error_of_the_server[error 524]",
        "may respond so after the order was taken and billed",
    ),
    "shapes_as_failures": Mistake(
        'raise SubmitUncertain("Acme accepted the job but returned no status URL.")',
        'raise JobFailed("Acme is odd.")',
        "test_a_success_of_another_shape_is_not_asked_for_again[null]",
        "raise SubmitUncertain for a shape that you do not know",
    ),
    "polls_that_submit": Mistake(
        'if answer.status == 404:\n            raise HandleLost("',
        'if answer.status >= 404:\n            raise JobFailed("',
        "test_a_poll_that_fails_never_submits",
        "`poll` raises Transient or RateLimited for a temporary",
    ),
    "refusals_as_failures": Mistake(
        'case "refused":\n                raise ContentPolicy(',
        'case "refused":\n                raise JobFailed(',
        "test_refused_content_is_not_asked_for_again",
        "Raise ContentPolicy if the API refuses the content",
    ),
    "credit_as_a_moments_trouble": Mistake(
        '        raise AccountProblem("Acme has no credit left.")',
        '        raise Transient("Acme has no credit left.")',
        "test_a_refused_key_takes_the_endpoint_off_sale",
        "Raise AccountProblem if the operator must act",
    ),
    "handles_in_memory": Mistake(
        'return Handle(id=body["job"], urls={"status": body["status_url"]})',
        'self.urls[body["job"]] = body["status_url"]\n        return Handle(id=body["job"])',
        "test_a_restart_in_mid_job_goes_on_with_it[power cut]",
        "keep all it takes in the Handle",
        also={
            'name: str = "acme"': 'name: str = "acme"\n    urls: dict = attrs.field(factory=dict)',
            '"GET", handle.urls["status"]': '"GET", self.urls[handle.id]',
        },
    ),
    "prompts_in_the_log": Mistake(
        '        """Start one job; the gateway stores its handle before it polls."""',
        '        __import__("logging").warning("asked for %s", request.prompt)',
        "test_no_log_line_and_no_buyer_learns_a_key_or_a_prompt[made]",
        "The log shows the buyer's prompt",
    ),
    "keys_that_print": Mistake(
        "Painter(outbound, Traits(max_concurrency=mine.max_concurrency or None))",
        "Painter(outbound, Traits(max_concurrency=4), str(mine.api_key))",
        "test_its_key_shows_nowhere",
        "Printing the provider shows its key",
    ),
    "waiting_that_costs": Mistake(
        "    answer.check()\n\n\ndef result(",
        "    if answer.status == 429:\n"
        '        raise Transient("busy")\n'
        "    answer.check()\n\n\ndef result(",
        "test_too_many_requests_are_waited_for",
        "`submit` raises RateLimited",
    ),
    "nothing_as_a_failure": Mistake(
        'raise ContentPolicy("Acme returned no picture for this prompt.")',
        'raise JobFailed("Acme returned no picture.")',
        "test_success_without_a_result_is_not_asked_for_again",
        "Raise ContentPolicy for an answer without a picture",
    ),
    "capabilities_of_its_own": Mistake(
        'capability="text-to-image"',
        'capability="picture-painting"',
        "test_it_sells_what_agents_look_for",
        "agents do not search for the capability 'picture-painting'",
    ),
    "ratios_that_break": Mistake(
        '"ratio": request.aspect_ratio,',
        '"ratio": {"1:1": "square", "16:9": "wide"}[request.aspect_ratio or "1:1"],',
        "test_every_choice_on_sale_works",
        "is on sale, and a request for it ended as uncertain_submit",
    ),
    "slugs_nobody_can_type": Mistake(
        'slug="acme-picture"',
        'slug="Acme Picture"',
        "test_what_is_paid_for_is_delivered",
        "The gateway does not take gateway_slugs_nobody_can_type",
    ),
    "refusing_the_kits_prompt": Mistake(
        "    async def submit(",
        "    async def validate(self, request, endpoint):\n"
        '        raise __import__("gateway").InvalidInput("Too short.")\n\n'
        "    async def submit(",
        "test_what_is_paid_for_is_delivered",
        "`validate` refuses the kit's request: Too short. Give the kit one that your vendor takes",
    ),
    "waiting_as_a_failure": Mistake(
        'return Pending(progress=state.get("progress"), poll_after_s=2.0)',
        'raise JobFailed("Acme is slow.")',
        "test_a_slow_job_is_waited_for",
        "Return `gateway.Pending()` from `poll` while the job is not done",
    ),
    "hooks_that_stop_the_gateway": Mistake(
        "if not str(mine.api_key):\n        return",
        'if not str(mine.api_key):\n        raise RuntimeError("no key")',
        "test_a_gateway_starts_before_the_operator_has_set_it_up",
        "Without its settings a plugin registers nothing",
    ),
}
FORGOTTEN = """
import gateway_docling.converter
import pytest
from tests.proof.kit.test_kit_docling import DoclingApi


class TestDocling(ProviderContract):
    plugin = gateway_docling
    api = DoclingApi


class ForgetfulApi(AcmeApi):
    nothing = FakeApi.nothing


class TestForgotten(ProviderContract):
    plugin = gateway_billed_four_times
    api = ForgetfulApi


class TestNoApi(ProviderContract):
    plugin = gateway_billed_four_times


class KeylessApi(AcmeApi):
    def settings(self, url):
        return {}


class TestKeyless(ProviderContract):
    plugin = gateway_billed_four_times
    api = KeylessApi


class TestUnpaidPages(TestDocling):
    @pytest.fixture(autouse=True)
    def _ask_for_all(self, monkeypatch):
        monkeypatch.setattr(gateway_docling.converter, "paid_pages", lambda *_: 1_000)
"""
CARELESS = {
    "TestForgotten::test_success_without_a_result_is_not_asked_for_again": (
        "Your FakeApi has no `nothing`: write it from the vendor's documentation"
    ),
    "TestNoApi::test_what_is_paid_for_is_delivered": "Name the API that the provider uses",
    "TestUnpaidPages::test_the_vendor_is_asked_for_the_paid_pages_only": (
        "Ask the vendor for the pages up to `gateway.vendors.paid_pages(request, job.endpoint)`"
    ),
    "TestKeyless::test_what_is_paid_for_is_delivered": "Is everything set that your hook asks for?",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Run all the wrong plugins through their scenes; return the output."""
    folder = tmp_path_factory.mktemp("mistakes")
    right = (EXAMPLE / "src" / "gateway_acme.py").read_text()
    tests = (EXAMPLE / "tests" / "test_acme.py").read_text()
    nodes = [f"test_all.py::{node}" for node in CARELESS]
    classes, imports = [], []
    for name, mistake in MISTAKES.items():
        (folder / f"gateway_{name}.py").write_text(mistake.made_in(right))
        imports.append(f"import gateway_{name}")
        classes.append(f"class Test_{name}(ProviderContract):\n    plugin = gateway_{name}\n")
        classes.append("    api = AcmeApi\n\n\n")
        nodes.append(f"test_all.py::Test_{name}::{mistake.scene}")
    whole = "\n".join([tests.replace("import gateway_acme", "\n".join(imports)), *classes])
    whole = whole.replace("class TestAcme(", "class Unused(").replace(
        "= gateway_acme\n", "= None\n"
    )
    (folder / "test_all.py").write_text(whole + FORGOTTEN)
    return report_of(folder, nodes)


def part_of(report, node):
    """Return pytest's output about one failed test, without line breaks."""
    title = f" {node.replace('::', '.')} "
    assert title in report, f"{node} did not fail:\n{report[-6000:]}"
    part = report.split(title, 1)[1].split("\n____", 1)[0]
    return " ".join(part.replace("\nE  ", " ").split())


# A single test: otherwise each process with a part of it would repeat the run.
@pytest.mark.full
def test_mistakes_are_explained_and_what_an_author_left_out_is_named(report):
    expected = {f"Test_{name}::{one.scene}": one.says for name, one in MISTAKES.items()} | CARELESS
    found = {node: part_of(report, node) for node in expected}
    assert {node: said for node, said in found.items() if expected[node] not in said} == {}
