-- What became of our settlements in their blocks, and which payers made them fail.

-- 1 once a receipt was looked at, or needs no look: its payment was settled.
ALTER TABLE sent_transactions ADD COLUMN judged INTEGER NOT NULL DEFAULT 0;
-- When it was seen to have reverted, what it cost (wei), and why:
-- 'wallet' (the payer has code), 'spent', 'drained', or 'unexplained'.
ALTER TABLE sent_transactions ADD COLUMN failed_at REAL;
ALTER TABLE sent_transactions ADD COLUMN fee_wei INTEGER;
ALTER TABLE sent_transactions ADD COLUMN failure TEXT;
UPDATE sent_transactions SET judged = 1 WHERE mined = 1;
CREATE INDEX sent_transactions_unjudged ON sent_transactions (payment_id)
    WHERE mined = 1 AND judged = 0;
CREATE INDEX sent_transactions_failed ON sent_transactions (failed_at)
    WHERE failed_at IS NOT NULL;

-- Payers whose failures up to a moment the operator has forgiven.
CREATE TABLE lifted_payers (
    payer TEXT PRIMARY KEY,
    at REAL NOT NULL,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX payments_payer ON payments (payer, state);
