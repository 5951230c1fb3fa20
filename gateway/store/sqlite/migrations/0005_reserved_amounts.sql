-- Amounts that only one buyer pays: a transfer of such an amount buys for the request with the
-- Idempotency-Key that reserved it, because anyone can read a transfer's hash on the chain.
CREATE TABLE reserved_amounts (
    units INTEGER PRIMARY KEY,
    key_hash TEXT NOT NULL,
    -- From this block on the transfer may be found. Times are Unix seconds.
    from_block INTEGER NOT NULL,
    pay_by REAL NOT NULL,
    ends_at REAL NOT NULL
) STRICT;
CREATE INDEX reserved_amounts_key ON reserved_amounts (key_hash);
CREATE INDEX reserved_amounts_end ON reserved_amounts (ends_at);

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
