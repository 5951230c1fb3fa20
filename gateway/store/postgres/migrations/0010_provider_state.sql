-- What the nodes on one database tell each other about providers. What a column means is said in
-- SQLite's file of this number.

CREATE TABLE provider_state (
    name TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    off_reason TEXT,
    off_until DOUBLE PRECISION NOT NULL,
    paused_until DOUBLE PRECISION NOT NULL
);

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '7')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
