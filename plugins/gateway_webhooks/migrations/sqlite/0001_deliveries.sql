-- A row is deleted once its event was delivered or given up.
CREATE TABLE webhooks_deliveries (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id),
    type TEXT NOT NULL CHECK (type IN ('task.completed', 'task.failed', 'refund.sent')),
    payer TEXT NOT NULL,
    host TEXT NOT NULL,                 -- of the address, in lower case
    at REAL NOT NULL,                   -- when it happened
    failures INTEGER NOT NULL DEFAULT 0,  -- attempts to deliver it
    due_at REAL NOT NULL,               -- when it may be sent
    UNIQUE (task_id, type)
) STRICT;
CREATE INDEX webhooks_deliveries_due ON webhooks_deliveries (due_at);
CREATE INDEX webhooks_deliveries_pair ON webhooks_deliveries (payer, host, due_at);
