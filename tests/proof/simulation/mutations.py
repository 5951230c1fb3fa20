"""The production code broken on purpose, one rule at a time; the histories must catch each.

If the schema alone would stop a mutant, that part is loosened: the histories must detect the damage
themselves, without the second guard.
"""

import contextlib
from collections.abc import Callable, Iterator

from tests.proof.simulation import broken_accepting as accepting
from tests.proof.simulation import broken_batches as batches
from tests.proof.simulation import broken_checks as checks
from tests.proof.simulation import broken_exposure as exposure
from tests.proof.simulation import broken_settling as settling
from tests.proof.simulation import broken_vouchers as vouchers
from tests.proof.simulation import broken_working as working
from tests.proof.simulation.mutant import Mutant, patched

_MAKERS: dict[str, Callable[[], Mutant]] = {
    "direct-ignores-claims": accepting.direct_ignores_claims,
    "broadcast-before-claim": accepting.broadcast_before_claim,
    "state-alone": settling.state_alone,
    "402-on-timeout": accepting.refuse_on_timeout,
    "unpinned-block": settling.unpinned,
    "status-alone": settling.status_alone,
    "two-transactions": accepting.two_transactions,
    "window-first": accepting.window_first,
    "spent-is-the-end": accepting.spent_is_the_end,
    "any-request": accepting.any_request,
    "receipt-before-block": settling.preconfirmed_counts,
    "window-in-blocks": settling.window_in_blocks,
    "missing-log-proves": settling.missing_log_proves,
    "wrong-end-of-a-second": accepting.wrong_end_of_a_second,
    "reserved-for-nobody": accepting.reserved_for_nobody,
    "nonce-twice": settling.nonce_twice,
    "nonce-before-write": settling.nonce_before_write,
    "broadcast-before-row": settling.broadcast_before_row,
    "late-commit": settling.late_commit,
    "believed-facilitator": settling.believed_facilitator,
    "refund-anew": settling.refund_anew,
    "batch-status-alone": batches.status_alone,
    "batch-before-row": batches.broadcast_before_row,
    "batch-of-one": batches.first_only,
    "batch-bars-nobody": batches.status_bars,
    "unsimulated": checks.unsimulated,
    "claim-not-read": checks.claim_not_read,
    "code-not-read": checks.code_not_read,
    "code-unsimulated": checks.code_unsimulated,
    "shared-code-ignored": checks.shared_code_ignored,
    "shared-failure-ignored": checks.shared_failure_ignored,
    "shared-answer-of-another": checks.shared_answer_of_another,
    "shared-answer-kept": checks.shared_answer_kept,
    "unmarked-submit": working.unmarked_submit,
    "forgotten-handle": working.forgotten_handle,
    "uncertain-again": working.uncertain_again,
    "believed-exception": working.believed_exception,
    "nobody-barred": exposure.nobody_barred,
    "unlimited-open": exposure.unlimited,
    "paid-unjudged": exposure.paid_unjudged,
    "batch-unjudged": exposure.batch_unjudged,
    "excess-free": exposure.excess_free,
    "many-nonces": exposure.many_nonces,
    "voucher-before-claim": vouchers.taken_before_claim,
    "voucher-before-settling": vouchers.taken_before_settling,
    "voucher-not-claimed": vouchers.claim_not_written,
    "voucher-error-refuses": vouchers.error_is_refusal,
    "voucher-402-on-silence": vouchers.refuse_on_silence,
    "voucher-any-bytes": vouchers.any_bytes,
    "voucher-any-request": vouchers.any_wanted,
    "voucher-check-first": vouchers.check_first,
}
MUTANTS = {name: make() for name, make in _MAKERS.items()}
REQUIRED = tuple(_MAKERS)[:8]  # the list of payments.md
# The first history that catches each mutant. A short proof begins with it; `make mutants` searches.
SHOWN_BY = {
    "direct-ignores-claims": 3,
    "broadcast-before-claim": 0,
    "state-alone": 2,
    "402-on-timeout": 72,
    "unpinned-block": 34,
    "status-alone": 2,
    "two-transactions": 3,
    "window-first": 4,
    "spent-is-the-end": 20,
    "any-request": 8,
    "receipt-before-block": 2,
    "window-in-blocks": 31,
    "missing-log-proves": 211,
    "wrong-end-of-a-second": 1,
    "reserved-for-nobody": 53,
    "nonce-twice": 2,
    "nonce-before-write": 37,
    "broadcast-before-row": 8,
    "late-commit": 1,
    "believed-facilitator": 3,
    "refund-anew": 30,
    "batch-status-alone": 3,
    "batch-before-row": 5,
    "batch-of-one": 2,
    "batch-bars-nobody": 2,
    "unsimulated": 167,
    "claim-not-read": 488,
    "code-not-read": 2,
    "code-unsimulated": 2,
    "shared-code-ignored": 2,
    "shared-failure-ignored": 167,
    "shared-answer-of-another": 184,
    "shared-answer-kept": 187,
    "unmarked-submit": 58,
    "forgotten-handle": 2,
    "uncertain-again": 20,
    "believed-exception": 2,
    "nobody-barred": 2,
    "unlimited-open": 1,
    "paid-unjudged": 71,
    "batch-unjudged": 87,
    "excess-free": 168,
    "many-nonces": 281,
    "voucher-before-claim": 10,
    "voucher-before-settling": 3,
    "voucher-not-claimed": 3,
    "voucher-error-refuses": 10,
    "voucher-402-on-silence": 96,
    "voucher-any-bytes": 17,
    "voucher-any-request": 17,
    "voucher-check-first": 10,
}


@contextlib.contextmanager
def applied(name: str | None) -> Iterator[tuple[str, ...]]:
    """Break the code for a while; yields the loosening of the schema. None breaks nothing."""
    if name is None:
        yield ()
        return
    mutant = MUTANTS[name]
    with patched(*mutant.patches):
        yield mutant.relaxed
