-- The schema of the first release: claims, payments, tasks and all that must be durable with them.
-- Times are Unix seconds, money is units of 10⁻⁶ USDC, hex is lower case.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The files with tables of plugins that were applied.
CREATE TABLE plugin_schemas (
    plugin TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (plugin, number)
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
    -- 1: the payer signed it, as of x402; of a direct transfer only a payerSignature proves one.
    payer_proven INTEGER NOT NULL DEFAULT 0,
    paid_block INTEGER,                -- the block of the transfer that paid
    -- The method that took the money; NULL: USDC on the chain. Such a payment has flow 'direct'.
    method TEXT,
    CHECK ((flow = 'x402') = (authorization IS NOT NULL)),
    CHECK ((paid_tx IS NULL) = (state IN ('reserved', 'settling', 'released'))),
    CHECK ((paid_tx IS NULL) = (paid_log_index IS NULL)),
    CHECK (paid_tx IS NULL OR paid_units >= price_units)
) STRICT;

-- Of an x402 payment its authorization's claim decides. A log's index is counted in its block, and
-- a batch that is mined again in a replaced block has others: they must not look like double use.
CREATE UNIQUE INDEX payments_one_use ON payments (paid_tx) WHERE flow = 'direct';
CREATE INDEX payments_paid_tx ON payments (paid_tx) WHERE paid_tx IS NOT NULL;
CREATE INDEX payments_open ON payments (id) WHERE state IN ('reserved', 'settling');
CREATE INDEX payments_open_methods ON payments (id)
    WHERE method IS NOT NULL AND state IN ('reserved', 'settling');
CREATE INDEX payments_state ON payments (state);
CREATE INDEX payments_payer ON payments (payer, state);
CREATE INDEX payments_over ON payments (id) WHERE paid_units > price_units;
CREATE INDEX payments_created ON payments (created_at);
-- Holds all that sums over a period read.
CREATE INDEX payments_sums ON payments (id, state, paid_units);

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
    handle TEXT,                       -- JSON of the job: it is polled, never submitted
    sent_at REAL,                      -- a submit was begun; NULL again once it failed
    note TEXT,                         -- of its progress, for the operator
    cost_micros INTEGER,               -- to the operator, in 10⁻⁶ US dollars
    callback_url TEXT,                 -- for webhooks; it may hold a secret of the buyer's
    provider TEXT,                     -- the vendor's account that generated
    reason TEXT,                       -- of a failure, with the vendor's words
    cost_source TEXT                   -- NULL: the cost is not known
        CHECK (cost_source IN ('told', 'set', 'table')),
    request_id TEXT,                   -- of the HTTP request that bought it
    leased_by TEXT,                    -- the node that holds the lease; on SQLite always NULL
    CHECK ((status = 'completed') = (result IS NOT NULL)),
    CHECK ((status IN ('failed', 'dropped')) = (code IS NOT NULL))
) STRICT;

CREATE INDEX tasks_due ON tasks (due_at) WHERE status IN ('queued', 'processing');
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE expires_at IS NOT NULL AND outputs_gone = 0;
-- Lists begin with the newest task; each filter has an index in that order.
CREATE INDEX tasks_created ON tasks (created_at, payment_id);
CREATE INDEX tasks_newest_of_status ON tasks (status, created_at, payment_id);
CREATE INDEX tasks_details ON tasks (details, created_at, payment_id) WHERE details IS NOT NULL;
CREATE INDEX tasks_job ON tasks (json_extract(handle, '$.id')) WHERE handle IS NOT NULL;
CREATE INDEX tasks_completed ON tasks (completed_at) WHERE completed_at IS NOT NULL;
-- Holds all that sums over a period read.
CREATE INDEX tasks_sums ON tasks
    (slug, created_at, payment_id, status, cost_micros, completed_at);

-- The file of a request, durable exactly as long as its unfinished task.
CREATE TABLE task_files (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id),
    data BLOB NOT NULL
) STRICT;

-- Long texts of results, such as a document's Markdown: the row that each poll reads stays small.
CREATE TABLE task_texts (
    task_id TEXT NOT NULL REFERENCES tasks (id),
    part INTEGER NOT NULL,             -- from 0
    -- The text as it is in JSON, without its quotes, in parts of at most 65,536 characters.
    data BLOB NOT NULL,
    PRIMARY KEY (task_id, part)
) STRICT;

CREATE TABLE payment_events (
    id INTEGER PRIMARY KEY,
    payment_id INTEGER NOT NULL REFERENCES payments (id),
    at REAL NOT NULL,
    old_state TEXT,
    new_state TEXT NOT NULL
) STRICT;
CREATE INDEX payment_events_payment ON payment_events (payment_id);

-- What our keys signed, for settlements and refunds. Stored before it is sent; several rows of one
-- nonce are replacements.
CREATE TABLE sent_transactions (
    tx_hash TEXT PRIMARY KEY,
    payment_id INTEGER NOT NULL REFERENCES payments (id),
    signer TEXT NOT NULL,
    nonce INTEGER NOT NULL,
    raw BLOB NOT NULL,
    max_fee_wei INTEGER NOT NULL,
    max_priority_wei INTEGER NOT NULL,
    sent_at REAL NOT NULL,
    mined INTEGER NOT NULL DEFAULT 0,  -- its nonce is used up on-chain
    judged INTEGER NOT NULL DEFAULT 0, -- 1: its receipt was read, or its payment was settled
    failed_at REAL,                    -- when it was seen to have reverted
    fee_wei INTEGER,                   -- what that cost
    -- Why: 'wallet' (the payer has code), 'spent', 'drained', or 'unexplained'.
    failure TEXT,
    -- What a mined transaction cost; NULL: not mined, or not known.
    gas_wei INTEGER,                   -- execution on Base (L2)
    l1_fee_wei INTEGER,                -- its data on Ethereum (L1)
    mined_block INTEGER,
    mined_at REAL,                     -- the block's time
    succeeded INTEGER                  -- 0: mined and reverted
) STRICT, WITHOUT ROWID;
CREATE INDEX sent_transactions_payment ON sent_transactions (payment_id);
CREATE INDEX sent_transactions_nonce ON sent_transactions (signer, nonce);
CREATE INDEX sent_transactions_mined ON sent_transactions (signer, mined, nonce);
CREATE INDEX sent_transactions_unjudged ON sent_transactions (payment_id)
    WHERE mined = 1 AND judged = 0;
CREATE INDEX sent_transactions_failed ON sent_transactions (failed_at)
    WHERE failed_at IS NOT NULL;
CREATE INDEX sent_transactions_undated ON sent_transactions (sent_at)
    WHERE mined = 1 AND mined_at IS NULL;
CREATE INDEX sent_transactions_at ON sent_transactions (mined_at, gas_wei, l1_fee_wei)
    WHERE mined_at IS NOT NULL;

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

CREATE TABLE refunds (
    payment_id INTEGER PRIMARY KEY REFERENCES payments (id),
    amount_units INTEGER NOT NULL CHECK (amount_units > 0),
    recipient TEXT NOT NULL,
    reason TEXT NOT NULL,
    tx_hash TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    decision TEXT CHECK (decision IN ('approved', 'rejected')),
    note TEXT,                         -- why it was decided so, for the operator
    sender TEXT,                       -- the address of the key that signed it
    problem TEXT,                      -- why it is not sent yet, or failed
    begun_at REAL,                     -- when it was first signed: counts for the cap
    search_from_block INTEGER          -- no earlier block can hold it
) STRICT;
CREATE INDEX refunds_begun ON refunds (begun_at) WHERE begun_at IS NOT NULL;
CREATE INDEX refunds_tx ON refunds (tx_hash) WHERE tx_hash IS NOT NULL;

CREATE TABLE login_attempts (
    address TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX login_attempts_address ON login_attempts (address, at);

-- Payers whose failures up to a moment the operator has forgiven.
CREATE TABLE lifted_payers (
    payer TEXT PRIMARY KEY,
    at REAL NOT NULL,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The events that each node's plugins read. A start writes the node's rows.
CREATE TABLE event_readers (
    node TEXT NOT NULL,                 -- empty if the database has one node
    reader TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('task.completed', 'task.failed', 'refund.sent')),
    only_with_callback INTEGER NOT NULL CHECK (only_with_callback IN (0, 1)),
    seen_at REAL NOT NULL,              -- when the node last registered it
    PRIMARY KEY (type, reader, node)
) STRICT, WITHOUT ROWID;

-- Events that wait for a reader. A row is deleted in the write in which the reader takes it.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    reader TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('task.completed', 'task.failed', 'refund.sent')),
    task_id TEXT NOT NULL REFERENCES tasks (id),
    at REAL NOT NULL,                  -- when it happened
    due_at REAL NOT NULL DEFAULT 0     -- later, if the reader refuses it
) STRICT;
CREATE INDEX events_reader ON events (reader, id);

-- Payments by further methods, such as vouchers: the core keeps their proofs and cannot read them.
CREATE TABLE method_proofs (
    payment_id INTEGER PRIMARY KEY REFERENCES payments (id),
    claim TEXT NOT NULL UNIQUE,        -- <method>:<key>; the same is in claims
    proof BLOB NOT NULL CHECK (length(proof) BETWEEN 1 AND 16384),
    value_units INTEGER NOT NULL CHECK (value_units > 0),
    payer TEXT NOT NULL,               -- who pays, in the method's words
    refund_to TEXT,                    -- the address that the proof names for a refund in USDC
    answer TEXT                        -- the settler's receipt, or why it refused
) STRICT;
-- The operator's pages find the payments of one payer by it.
CREATE INDEX method_proofs_payer ON method_proofs (payer);

-- What an operator did, written in the transaction of the action itself.
CREATE TABLE operator_actions (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    door TEXT NOT NULL CHECK (door IN ('page', 'api', 'cli', 'gateway')),
    actor TEXT NOT NULL,               -- a session's short id, a token's name, a user of the shell
    address TEXT NOT NULL,             -- of the client; empty for the CLI
    action TEXT NOT NULL,              -- such as refund.approve
    subject TEXT NOT NULL,             -- a task, an endpoint, an alarm
    reason TEXT NOT NULL,
    before TEXT,                       -- JSON
    after TEXT,                        -- JSON
    request TEXT UNIQUE                -- the Idempotency-Key of the request, with its actor
) STRICT;
CREATE INDEX operator_actions_subject ON operator_actions (subject);

-- A pause, price or cost of an endpoint that stands above the settings. The newest row of a slug
-- and field counts; a NULL value takes the override back.
CREATE TABLE endpoint_overrides (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL,
    field TEXT NOT NULL CHECK (field IN ('paused', 'price', 'cost')),
    value TEXT,                        -- paused: true; price and cost: units of 10⁻⁶
    at REAL NOT NULL,
    action_id INTEGER NOT NULL REFERENCES operator_actions (id)
) STRICT;
CREATE INDEX endpoint_overrides_newest ON endpoint_overrides (slug, field, id);

-- A transfer that bought nothing, and that the operator has looked at or pays back.
CREATE TABLE unclaimed_marks (
    tx_hash TEXT NOT NULL,
    log_index INTEGER NOT NULL,
    at REAL NOT NULL,
    action_id INTEGER NOT NULL REFERENCES operator_actions (id),
    PRIMARY KEY (tx_hash, log_index)
) STRICT, WITHOUT ROWID;

CREATE TABLE operator_sessions (
    id TEXT PRIMARY KEY,               -- SHA-256 of what the cookie holds
    created_at REAL NOT NULL,
    seen_at REAL NOT NULL,
    fresh_until REAL NOT NULL,         -- until then the password was given a moment ago
    address TEXT NOT NULL,
    device TEXT NOT NULL,              -- the browser's own words
    password TEXT NOT NULL,            -- fingerprint of the password's hash: a new one ends it
    ended_at REAL
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_sessions_open ON operator_sessions (seen_at) WHERE ended_at IS NULL;

-- Logins that were refused, summed: strangers cause them, and every row of operator_actions stays.
CREATE TABLE operator_refused_logins (
    address TEXT NOT NULL,
    hour INTEGER NOT NULL,             -- since 1970
    count INTEGER NOT NULL,
    at REAL NOT NULL,                  -- the newest
    PRIMARY KEY (address, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_refused_logins_at ON operator_refused_logins (at);

CREATE TABLE operator_tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,         -- SHA-256 of the token
    scope TEXT NOT NULL CHECK (scope IN ('read', 'act')),
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL,
    revoked_at REAL
) STRICT;

-- At most one: the secret of the operator's codes (RFC 6238).
CREATE TABLE operator_codes (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret TEXT NOT NULL,
    confirmed_at REAL,                 -- NULL: shown, no code was given yet
    last_step INTEGER NOT NULL DEFAULT 0  -- a code is taken once
) STRICT;

CREATE TABLE operator_passkeys (
    id TEXT PRIMARY KEY,               -- the credential's id in base64url
    name TEXT NOT NULL,
    public_key BLOB NOT NULL,
    sign_count INTEGER NOT NULL,
    created_at REAL NOT NULL,
    used_at REAL
) STRICT, WITHOUT ROWID;

-- Conditions that hold or held. A row is open until ended_at.
CREATE TABLE alarms (
    id INTEGER PRIMARY KEY,
    condition TEXT NOT NULL,           -- such as gas
    subject TEXT NOT NULL,             -- a slug, a vendor, a key; empty: the gateway
    urgency TEXT NOT NULL CHECK (urgency IN ('notice', 'soon', 'urgent')),
    text TEXT NOT NULL,                -- JSON: what, what it costs now, what to do
    since REAL NOT NULL,               -- when the condition was first seen
    urgent_since REAL NOT NULL,        -- since when it is as urgent as it is
    raised_at REAL,                    -- NULL: it does not hold for long enough yet
    told_at REAL,                      -- when the channels were given a message last
    told_urgency TEXT,                 -- how urgent it was then
    calm_since REAL,
    ended_at REAL,
    muted_until REAL,
    mute_reason TEXT
) STRICT;
CREATE UNIQUE INDEX alarms_open ON alarms (condition, subject) WHERE ended_at IS NULL;
CREATE INDEX alarms_ended ON alarms (ended_at) WHERE ended_at IS NOT NULL;

-- What is to be told, once for each channel. A row is due until it is told or given up.
CREATE TABLE alarm_messages (
    id INTEGER PRIMARY KEY,
    channel TEXT NOT NULL,             -- such as webhook; an address is not in it
    event TEXT NOT NULL,               -- raised, again, ended, digest
    text TEXT NOT NULL,                -- JSON: the message
    created_at REAL NOT NULL,
    due_at REAL,                       -- NULL: told, or given up
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT,                      -- of the newest attempt
    told_at REAL
) STRICT;
CREATE INDEX alarm_messages_due ON alarm_messages (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX alarm_messages_event ON alarm_messages (event, created_at);

-- Copies of the database, and the drills that restored one.
CREATE TABLE backups (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('backup', 'drill')),
    at REAL NOT NULL,
    took_s REAL NOT NULL,
    name TEXT NOT NULL,                -- of the copy, in its bucket or folder
    size_bytes INTEGER,
    error TEXT,                        -- NULL: it succeeded
    details TEXT                       -- JSON: of a drill, what a restore would forget
) STRICT;
CREATE INDEX backups_kind ON backups (kind, id);

-- Several machines on one database, which only PostgreSQL serves.

-- Who runs, and since when. A node writes its row anew every few seconds.
CREATE TABLE nodes (
    name TEXT PRIMARY KEY,
    life TEXT NOT NULL,                -- made at each start: two processes never have the same
    version TEXT NOT NULL,
    started_at REAL NOT NULL,
    seen_at REAL NOT NULL              -- by the database's own clock
) STRICT, WITHOUT ROWID;

-- What only one node does at a time, such as looking for payments that are still open.
CREATE TABLE roles (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,              -- the life that has it
    epoch INTEGER NOT NULL,            -- grows with each change of the holder
    until REAL NOT NULL                -- by the database's own clock
) STRICT, WITHOUT ROWID;

-- What the nodes on one database tell each other about providers. On SQLite it stays empty.
CREATE TABLE provider_state (
    name TEXT PRIMARY KEY,             -- provider:<plugin>:<provider>, or endpoint:<slug>
    epoch INTEGER NOT NULL,            -- grows whenever it goes off sale or comes back
    off_reason TEXT,                   -- for the operator; NULL while it is on sale
    off_until REAL NOT NULL,           -- no probe before; this and the next by the database's clock
    paused_until REAL NOT NULL         -- the vendor asks for no submit before
) STRICT, WITHOUT ROWID;

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

CREATE TRIGGER operator_actions_do_not_change BEFORE UPDATE ON operator_actions
BEGIN
    SELECT RAISE(ABORT, 'an action is never changed');
END;

CREATE TRIGGER operator_actions_are_kept BEFORE DELETE ON operator_actions
BEGIN
    SELECT RAISE(ABORT, 'an action is never deleted');
END;

-- Nobody proved an address, so no refund is sent without the operator; the zero address is none.
CREATE TRIGGER methods_begin_reserved BEFORE INSERT ON payments
WHEN NEW.method IS NOT NULL AND NOT (
    NEW.flow = 'direct' AND NEW.state = 'reserved' AND NEW.payer_proven = 0
    AND NEW.payer = '0x0000000000000000000000000000000000000000')
BEGIN
    SELECT RAISE(ABORT, 'a payment by a method begins reserved, without an address');
END;

CREATE TRIGGER methods_do_not_change BEFORE UPDATE OF method ON payments
WHEN OLD.method IS NOT NEW.method
BEGIN
    SELECT RAISE(ABORT, 'the method of a payment never changes');
END;

-- A settler is asked only after the payment is written down as settling.
CREATE TRIGGER methods_legal BEFORE UPDATE OF state ON payments
WHEN NEW.method IS NOT NULL AND OLD.state = 'reserved' AND NEW.state = 'settled'
BEGIN
    SELECT RAISE(ABORT, 'a payment by a method was settled before it was settling');
END;

-- What paid is the whole proof, and the proof is of this payment's own claim.
CREATE TRIGGER methods_paid BEFORE UPDATE OF state ON payments
WHEN NEW.method IS NOT NULL AND OLD.state != 'settled' AND NEW.state = 'settled' AND NOT EXISTS (
    SELECT 1 FROM method_proofs m JOIN claims c ON c.key = m.claim
    WHERE m.payment_id = NEW.id AND c.payment_id = NEW.id AND m.value_units = NEW.paid_units)
BEGIN
    SELECT RAISE(ABORT, 'a payment by a method without its own claim');
END;

CREATE TRIGGER method_proofs_do_not_change BEFORE UPDATE ON method_proofs
WHEN OLD.answer IS NOT NULL OR NEW.answer IS NULL
    OR OLD.payment_id != NEW.payment_id OR OLD.claim != NEW.claim OR OLD.proof != NEW.proof
    OR OLD.value_units != NEW.value_units OR OLD.payer != NEW.payer
    OR OLD.refund_to IS NOT NEW.refund_to
BEGIN
    SELECT RAISE(ABORT, 'a proof is never changed, and is answered once');
END;

CREATE TRIGGER method_proofs_are_kept BEFORE DELETE ON method_proofs
BEGIN
    SELECT RAISE(ABORT, 'a proof is never deleted');
END;

-- The oldest schema whose gateway may run on this one. Every later file sets it again.
INSERT INTO meta (key, value) VALUES ('readable_by', '1');
-- Databases of development versions lack this row. Their numbers mean other schemas.
INSERT INTO meta (key, value) VALUES ('schema_base', '0.1.0-2');
