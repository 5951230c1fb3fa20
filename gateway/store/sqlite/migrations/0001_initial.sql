-- The first schema: claims, payments, tasks and all that must be durable with them.
-- Times are Unix seconds, money is units of 10⁻⁶ USDC, hex is lower case.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payments (
    id INTEGER PRIMARY KEY,
    flow TEXT NOT NULL CHECK (flow IN ('x402', 'direct')),
    state TEXT NOT NULL CHECK (state IN (
        'reserved', 'settling', 'settled', 'released',
        'refund_due', 'refunding', 'refunded', 'refund_failed')),
    request_hash TEXT NOT NULL,
    idempotency_hash TEXT UNIQUE,
    price_units INTEGER NOT NULL CHECK (price_units > 0),
    payer TEXT NOT NULL,
    authorization TEXT,                -- x402: the signed authorization as JSON
    search_from_block INTEGER NOT NULL,
    paid_tx TEXT,                      -- the transfer that paid: transaction, log and amount
    paid_log_index INTEGER,
    paid_units INTEGER,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    CHECK ((flow = 'x402') = (authorization IS NOT NULL)),
    CHECK ((paid_tx IS NULL) = (state IN ('reserved', 'settling', 'released'))),
    CHECK ((paid_tx IS NULL) = (paid_log_index IS NULL)),
    CHECK (paid_tx IS NULL OR paid_units >= price_units)
) STRICT;

-- One transfer pays once, whichever flow it came by. A transaction may hold several transfers.
CREATE UNIQUE INDEX payments_one_use ON payments (paid_tx, paid_log_index)
    WHERE paid_tx IS NOT NULL;
CREATE INDEX payments_open ON payments (id) WHERE state IN ('reserved', 'settling');
CREATE INDEX payments_state ON payments (state);

-- What stops double use across both flows: `tx:<hash>` and `auth:<token>:<from>:<nonce>`.
CREATE TABLE claims (
    key TEXT PRIMARY KEY,
    payment_id INTEGER NOT NULL REFERENCES payments (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    payment_id INTEGER NOT NULL UNIQUE REFERENCES payments (id),
    slug TEXT NOT NULL,
    capability TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN (
        'held', 'queued', 'processing', 'completed', 'failed', 'dropped')),
    request TEXT NOT NULL,             -- JSON, without the file
    attempt INTEGER NOT NULL DEFAULT 0,
    due_at REAL NOT NULL,              -- when it may be claimed; of a leased one: the lease's end
    lease_token TEXT,
    progress REAL,
    result TEXT,                       -- JSON of a completed one
    code TEXT,
    error TEXT,
    details TEXT,
    created_at REAL NOT NULL,
    started_at REAL,
    completed_at REAL,
    expires_at REAL,                   -- when its outputs are deleted
    outputs_gone INTEGER NOT NULL DEFAULT 0,
    CHECK ((status = 'completed') = (result IS NOT NULL)),
    CHECK ((status IN ('failed', 'dropped')) = (code IS NOT NULL))
) STRICT;

CREATE INDEX tasks_due ON tasks (due_at) WHERE status IN ('queued', 'processing');
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE expires_at IS NOT NULL AND outputs_gone = 0;

-- The file of a request, durable exactly as long as its unfinished task.
CREATE TABLE task_files (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id),
    data BLOB NOT NULL
) STRICT;

CREATE TABLE payment_events (
    id INTEGER PRIMARY KEY,
    payment_id INTEGER NOT NULL REFERENCES payments (id),
    at REAL NOT NULL,
    old_state TEXT,
    new_state TEXT NOT NULL
) STRICT;
CREATE INDEX payment_events_payment ON payment_events (payment_id);

-- What our own key signed. Stored before it is sent; several rows of one nonce are replacements.
CREATE TABLE settlement_transactions (
    tx_hash TEXT PRIMARY KEY,
    payment_id INTEGER NOT NULL REFERENCES payments (id),
    signer TEXT NOT NULL,
    nonce INTEGER NOT NULL,
    raw BLOB NOT NULL,
    max_fee_wei INTEGER NOT NULL,
    max_priority_wei INTEGER NOT NULL,
    sent_at REAL NOT NULL,
    mined INTEGER NOT NULL DEFAULT 0   -- its nonce is used up on-chain
) STRICT, WITHOUT ROWID;
CREATE INDEX settlement_transactions_payment ON settlement_transactions (payment_id);
CREATE INDEX settlement_transactions_nonce ON settlement_transactions (signer, mined, nonce);

CREATE TABLE signers (
    address TEXT PRIMARY KEY,
    next_nonce INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE refunds (
    payment_id INTEGER PRIMARY KEY REFERENCES payments (id),
    amount_units INTEGER NOT NULL CHECK (amount_units > 0),
    recipient TEXT NOT NULL,
    reason TEXT NOT NULL,
    tx_hash TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
) STRICT;

CREATE TABLE login_attempts (
    address TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX login_attempts_address ON login_attempts (address, at);

CREATE TRIGGER payments_legal BEFORE UPDATE OF state ON payments
WHEN NOT (
    OLD.state = NEW.state
    OR (OLD.state = 'reserved' AND NEW.state IN ('settling', 'settled', 'released'))
    OR (OLD.state = 'settling' AND NEW.state IN ('settled', 'released'))
    OR (OLD.state = 'settled' AND NEW.state = 'refund_due')
    OR (OLD.state = 'refund_due' AND NEW.state = 'refunding')
    OR (OLD.state = 'refunding' AND NEW.state IN ('refunded', 'refund_failed'))
    OR (OLD.state = 'refund_failed' AND NEW.state = 'refunding'))
BEGIN
    SELECT RAISE(ABORT, 'illegal change of a payment');
END;

CREATE TRIGGER payments_begun AFTER INSERT ON payments
BEGIN
    INSERT INTO payment_events (payment_id, at, new_state)
    VALUES (NEW.id, NEW.created_at, NEW.state);
END;

CREATE TRIGGER payments_changed AFTER UPDATE OF state ON payments WHEN OLD.state != NEW.state
BEGIN
    INSERT INTO payment_events (payment_id, at, old_state, new_state)
    VALUES (NEW.id, NEW.updated_at, OLD.state, NEW.state);
END;

CREATE TRIGGER tasks_legal BEFORE UPDATE OF status ON tasks
WHEN NOT (
    OLD.status = NEW.status
    OR (OLD.status = 'held' AND NEW.status IN ('queued', 'dropped'))
    OR (OLD.status = 'queued' AND NEW.status = 'processing')
    OR (OLD.status = 'processing' AND NEW.status IN ('completed', 'failed')))
BEGIN
    SELECT RAISE(ABORT, 'illegal change of a task');
END;

-- A task runs only for money that arrived.
CREATE TRIGGER tasks_paid BEFORE UPDATE OF status ON tasks
WHEN NEW.status IN ('queued', 'processing', 'completed')
    AND (SELECT state FROM payments WHERE id = NEW.payment_id) != 'settled'
BEGIN
    SELECT RAISE(ABORT, 'a task without a settled payment');
END;

CREATE TRIGGER claims_are_for_ever BEFORE DELETE ON claims
BEGIN
    SELECT RAISE(ABORT, 'a claim is never taken back');
END;

CREATE TRIGGER claims_do_not_change BEFORE UPDATE ON claims
BEGIN
    SELECT RAISE(ABORT, 'a claim is never changed');
END;
