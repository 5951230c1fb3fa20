-- Several machines on one database. What a column means is said in SQLite's file of this number.

ALTER TABLE tasks ADD COLUMN leased_by TEXT;

CREATE TABLE nodes (
    name TEXT PRIMARY KEY,
    life TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE roles (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    until DOUBLE PRECISION NOT NULL
);

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '7')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
