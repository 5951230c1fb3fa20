-- One transaction that settles several payments. Everything here is added, and without
-- GATEWAY_SETTLEMENT_BATCH the table stays empty. The release before this one still runs on the
-- database; it would sign open payments of a batch once more, and one of the two burns gas.

-- The payments of a batch, its first one too. Each is judged by itself: a batch succeeds although
-- calls in it failed. What `sent_transactions` says of failures is of payments that were sent alone.
CREATE TABLE sent_payments (
    payment_id INTEGER NOT NULL REFERENCES payments (id),
    tx_hash TEXT NOT NULL REFERENCES sent_transactions (tx_hash),
    judged INTEGER NOT NULL DEFAULT 0,
    failed_at REAL,
    fee_wei INTEGER,
    failure TEXT,
    PRIMARY KEY (payment_id, tx_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX sent_payments_transaction ON sent_payments (tx_hash);
CREATE INDEX sent_payments_unjudged ON sent_payments (tx_hash) WHERE judged = 0;
CREATE INDEX sent_payments_failed ON sent_payments (failed_at) WHERE failed_at IS NOT NULL;

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '5')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
