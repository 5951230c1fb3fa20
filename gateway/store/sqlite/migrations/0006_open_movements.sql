-- USDC that moved without a record, as far as blocks are safe: kept until a record explains it or the
-- operator marks it, so that a restart or another node forgets no theft.
CREATE TABLE open_movements (
    tx_hash TEXT NOT NULL,
    log_index INTEGER NOT NULL,
    block_number INTEGER NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    amount_units INTEGER NOT NULL,
    -- The gateway's address and its role, which a changed key would no longer have.
    address TEXT NOT NULL,
    role TEXT NOT NULL,
    -- The block's time in Unix seconds; NULL: not known yet.
    at REAL,
    PRIMARY KEY (tx_hash, log_index)
) STRICT, WITHOUT ROWID;

-- Whether the operator booked an outgoing transfer. Other marks do not explain one.
ALTER TABLE unclaimed_marks ADD COLUMN books_out INTEGER NOT NULL DEFAULT 0;

-- A payer's payments, page by page.
CREATE INDEX payments_payer_newest ON payments (payer, id) WHERE method IS NULL;

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
