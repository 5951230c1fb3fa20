-- What the nodes on one database tell each other about providers. On SQLite, with its one process,
-- the table stays empty. It is only added: the release before this one still runs on the database.

CREATE TABLE provider_state (
    name TEXT PRIMARY KEY,             -- provider:<plugin>:<provider>, or endpoint:<slug>
    epoch INTEGER NOT NULL,            -- grows whenever it goes off sale or comes back
    off_reason TEXT,                   -- for the operator; NULL while it is on sale
    off_until REAL NOT NULL,           -- no probe before; this and the next by the database's clock
    paused_until REAL NOT NULL         -- the vendor asks for no submit before
) STRICT, WITHOUT ROWID;

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '5')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
