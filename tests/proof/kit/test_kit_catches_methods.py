"""The kit finds the mistakes in a payment method that would give something away."""

from pathlib import Path

import attrs
import pytest

from tests.proof.kit.conftest import report_of

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "gateway-vouchers"


@attrs.frozen
class Mistake:
    """One mistake in a line of the example, the test that must fail, and its message."""

    file: str
    right: str
    wrong: str
    scene: str
    says: str


MISTAKES = {
    "two_tasks_for_one": Mistake(
        "method.py",
        "payment.task_id) != payment.task_id:",
        'payment.task_id) == "nobody":',
        "test_a_claim_that_was_taken_for_a_task_is_refused_to_another",
        "One proof has paid for two tasks.",
    ),
    "two_at_once": Mistake(
        "ledger.py",
        "return await asyncio.to_thread(self._write, claim, task_id)",
        "await asyncio.sleep(0.01)\n        return task_id",
        "test_of_two_tasks_at_once_one_gets_the_money",
        "8 of eight tasks were paid by one proof.",
    ),
    "forgetful": Mistake(
        "ledger.py",
        "self._path, timeout=",
        '":memory:", timeout=',
        "test_a_start_anew_knows_what_was_taken",
        "After a restart one proof pays for two tasks.",
    ),
    "forgeable": Mistake(
        "method.py",
        "if not self._seal.is_on(token):",
        "if not token:",
        "test_garbage_is_refused_and_never_breaks",
        "is taken as payment.",
    ),
    "breaking": Mistake(
        "method.py",
        "except ValueError:",
        "except KeyError:",
        "test_garbage_is_refused_and_never_breaks",
        "`read` and `check` raise PaymentRequired.",
    ),
    "talkative": Mistake(
        "method.py",
        '"voucher_malformed"',
        '"This is no voucher."',
        "test_garbage_is_refused_and_never_breaks",
        "give it a standard reason",
    ),
    "talkative_later": Mistake(
        "method.py",
        '"voucher_already_used"',
        '"Somebody has used it."',
        "test_a_claim_that_was_taken_for_a_task_is_refused_to_another",
        "give it a standard reason",
    ),
    "one_key": Mistake(
        "method.py",
        "key=voucher.serial",
        "key=str(voucher.value_units)",
        "test_two_headers_have_two_keys",
        "one would use up another.",
    ),
    "many_receipts": Mistake(
        "method.py",
        'Taken(f"voucher {voucher.serial}")',
        'Taken(__import__("secrets").token_hex(8))',
        "test_the_money_of_a_claim_is_taken_once_however_often_it_is_asked_for",
        "One payment has several receipts",
    ),
    "silent": Mistake(
        "method.py",
        'headers={"WWW-Authenticate": f"Voucher {\', \'.join(parts)}"}',
        "headers={}",
        "test_a_challenge_fits_into_a_402",
        "The 402 does not offer this payment method.",
    ),
}
TESTS = """
from typing import ClassVar

import gateway_{name}
from gateway_{name}.voucher import Seal, Voucher

from gateway.testing import PaymentMethodContract


class Test_{name}(PaymentMethodContract):
    plugin = gateway_{name}
    values: ClassVar = {{"vouchers_secret": 40 * "s"}}
    made = 0

    def header(self, quote, now):
        self.made += 1
        return Seal(40 * "s").token_of(
            Voucher(
                serial=f"{{self.made:032x}}",
                value_units=quote.price_units,
                expires=now + 60,
                gateway="gateway",
            )
        )
"""


def write_wrongly(folder: Path, name: str, mistake: Mistake) -> None:
    """Write the example as a package of another name, with one mistake in it."""
    package = folder / f"gateway_{name}"
    package.mkdir()
    for path in (EXAMPLE / "src" / "gateway_vouchers").glob("*.py"):
        text = path.read_text("utf-8")
        if path.name == mistake.file:
            assert text.count(mistake.right) == 1, f"the example has changed: {mistake.right}"
            text = text.replace(mistake.right, mistake.wrong)
        text = text.replace("gateway_vouchers", f"gateway_{name}")
        (package / path.name).write_text(text, "utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Run all the wrong methods through their tests; return the output."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, mistake in MISTAKES.items():
        write_wrongly(folder, name, mistake)
    (folder / "test_all.py").write_text("".join(TESTS.format(name=name) for name in MISTAKES))
    nodes = [f"test_all.py::Test_{name}::{mistake.scene}" for name, mistake in MISTAKES.items()]
    return report_of(folder, nodes)


# A single test: otherwise each process with a part of it would repeat the run.
@pytest.mark.full
def test_mistakes_are_found_and_explained(report):
    unsaid = {}
    for name, mistake in MISTAKES.items():
        title = f" Test_{name}.{mistake.scene}"
        assert title in report, f"{name} did not fail:\n{report[-6000:]}"
        section = report.split(title, 1)[1].split("\n____", 1)[0]
        if mistake.says not in " ".join(section.replace("\nE  ", " ").split()):
            unsaid[name] = section
    assert unsaid == {}
