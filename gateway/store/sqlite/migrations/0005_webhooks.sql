-- Webhooks: the address at which a buyer wants to hear of its task, and what it has not heard yet.

-- NULL where the buyer named none. It may hold a secret of the buyer's.
ALTER TABLE tasks ADD COLUMN callback_url TEXT;

-- Events that are to be delivered. A row is deleted once its event was delivered or given up.
CREATE TABLE webhook_events (
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
CREATE INDEX webhook_events_due ON webhook_events (due_at);
CREATE INDEX webhook_events_pair ON webhook_events (payer, host, due_at);
