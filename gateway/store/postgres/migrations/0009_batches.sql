-- One transaction that settles several payments. What a column means is said in SQLite's file of
-- this number.

CREATE TABLE sent_payments (
    payment_id BIGINT NOT NULL REFERENCES payments (id),
    tx_hash TEXT NOT NULL REFERENCES sent_transactions (tx_hash),
    judged BIGINT NOT NULL DEFAULT 0,
    failed_at DOUBLE PRECISION,
    fee_wei BIGINT,
    failure TEXT,
    PRIMARY KEY (payment_id, tx_hash)
);
CREATE INDEX sent_payments_transaction ON sent_payments (tx_hash);
CREATE INDEX sent_payments_unjudged ON sent_payments (tx_hash) WHERE judged = 0;
CREATE INDEX sent_payments_failed ON sent_payments (failed_at) WHERE failed_at IS NOT NULL;

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '7')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
