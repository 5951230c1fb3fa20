-- What an operator is shown, told and has done: costs and gas, actions, logins, alarms, copies.
-- Everything here is added: the release before this one still runs on the database.

-- Why a task ended as it did, and what its cost comes from; NULL in tasks of earlier releases.
ALTER TABLE tasks ADD COLUMN provider TEXT;        -- the vendor's account that generated
ALTER TABLE tasks ADD COLUMN reason TEXT;          -- of a failure, with the vendor's words
ALTER TABLE tasks ADD COLUMN cost_source TEXT      -- NULL: the cost is not known
    CHECK (cost_source IN ('told', 'set', 'table'));
ALTER TABLE tasks ADD COLUMN request_id TEXT;      -- of the HTTP request that bought it
-- Lists begin with the newest task; each filter has an index in that order.
CREATE INDEX tasks_created ON tasks (created_at, payment_id);
CREATE INDEX tasks_newest_of_status ON tasks (status, created_at, payment_id);
CREATE INDEX tasks_details ON tasks (details, created_at, payment_id) WHERE details IS NOT NULL;
CREATE INDEX tasks_job ON tasks (json_extract(handle, '$.id')) WHERE handle IS NOT NULL;
CREATE INDEX refunds_tx ON refunds (tx_hash) WHERE tx_hash IS NOT NULL;
CREATE INDEX payments_over ON payments (id) WHERE paid_units > price_units;
CREATE INDEX payments_created ON payments (created_at);
CREATE INDEX tasks_completed ON tasks (completed_at) WHERE completed_at IS NOT NULL;
-- For sums over a period: each holds all that the sums read.
CREATE INDEX tasks_sums ON tasks
    (slug, created_at, payment_id, status, cost_micros, completed_at);
CREATE INDEX payments_sums ON payments (id, state, paid_units);

-- The block of the transfer that paid; NULL in payments of earlier releases.
ALTER TABLE payments ADD COLUMN paid_block INTEGER;

-- What a mined transaction cost; NULL: not mined, or not known.
ALTER TABLE sent_transactions ADD COLUMN gas_wei INTEGER;       -- execution on Base (L2)
ALTER TABLE sent_transactions ADD COLUMN l1_fee_wei INTEGER;    -- its data on Ethereum (L1)
ALTER TABLE sent_transactions ADD COLUMN mined_block INTEGER;
ALTER TABLE sent_transactions ADD COLUMN mined_at REAL;         -- the block's time
ALTER TABLE sent_transactions ADD COLUMN succeeded INTEGER;     -- 0: mined and reverted
CREATE INDEX sent_transactions_undated ON sent_transactions (sent_at)
    WHERE mined = 1 AND mined_at IS NULL;
CREATE INDEX sent_transactions_at ON sent_transactions (mined_at, gas_wei, l1_fee_wei)
    WHERE mined_at IS NOT NULL;

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

CREATE TRIGGER operator_actions_do_not_change BEFORE UPDATE ON operator_actions
BEGIN
    SELECT RAISE(ABORT, 'an action is never changed');
END;

CREATE TRIGGER operator_actions_are_kept BEFORE DELETE ON operator_actions
BEGIN
    SELECT RAISE(ABORT, 'an action is never deleted');
END;

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

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '5')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
