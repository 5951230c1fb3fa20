-- Refunds that are decided, sent and finished; payers who proved themselves.

-- Both the settlement key and the refund key write down here what they sign.
ALTER TABLE settlement_transactions RENAME TO sent_transactions;
DROP INDEX settlement_transactions_payment;
DROP INDEX settlement_transactions_nonce;
CREATE INDEX sent_transactions_payment ON sent_transactions (payment_id);
CREATE INDEX sent_transactions_nonce ON sent_transactions (signer, nonce);
CREATE INDEX sent_transactions_mined ON sent_transactions (signer, mined, nonce);
DROP TABLE signers;  -- what was signed tells which nonces are used

-- The payer of an x402 payment signed it; of a direct transfer only a payerSignature proves one.
ALTER TABLE payments ADD COLUMN payer_proven INTEGER NOT NULL DEFAULT 0;
UPDATE payments SET payer_proven = 1 WHERE flow = 'x402';

ALTER TABLE refunds ADD COLUMN decision TEXT CHECK (decision IN ('approved', 'rejected'));
ALTER TABLE refunds ADD COLUMN note TEXT;          -- why it was decided so, for the operator
ALTER TABLE refunds ADD COLUMN sender TEXT;        -- the address of the key that signed it
ALTER TABLE refunds ADD COLUMN problem TEXT;       -- why it is not sent yet, or failed
ALTER TABLE refunds ADD COLUMN begun_at REAL;      -- when it was first signed: counts for the cap
ALTER TABLE refunds ADD COLUMN search_from_block INTEGER;  -- no earlier block can hold it
CREATE INDEX refunds_begun ON refunds (begun_at) WHERE begun_at IS NOT NULL;

DROP TRIGGER payments_legal;
CREATE TRIGGER payments_legal BEFORE UPDATE OF state ON payments
WHEN NOT (
    OLD.state = NEW.state
    OR (OLD.state = 'reserved' AND NEW.state IN ('settling', 'settled', 'released'))
    OR (OLD.state = 'settling' AND NEW.state IN ('settled', 'released'))
    OR (OLD.state = 'settled' AND NEW.state = 'refund_due')
    OR (OLD.state = 'refund_due' AND NEW.state IN ('refunding', 'refund_failed'))
    OR (OLD.state = 'refunding' AND NEW.state IN ('refunded', 'refund_failed'))
    OR (OLD.state = 'refund_failed' AND NEW.state = 'refund_due'))
BEGIN
    SELECT RAISE(ABORT, 'illegal change of a payment');
END;

-- Of an x402 payment its authorization's claim decides. A log's index is counted in its block, and
-- a batch that is mined again in a replaced block has others: they must not look like double use.
DROP INDEX payments_one_use;
CREATE UNIQUE INDEX payments_one_use ON payments (paid_tx) WHERE flow = 'direct';
CREATE INDEX payments_paid_tx ON payments (paid_tx) WHERE paid_tx IS NOT NULL;
