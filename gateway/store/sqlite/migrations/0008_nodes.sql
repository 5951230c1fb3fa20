-- Several machines on one database, which only PostgreSQL serves; SQLite's one process uses the
-- first column alone. Everything here is added: the release before this one still runs on it.

-- The node that holds a task's lease; NULL: an earlier release leased it.
ALTER TABLE tasks ADD COLUMN leased_by TEXT;

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

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '5')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
