-- Long texts of results. What a column means is said in SQLite's file of this number.

CREATE TABLE task_texts (
    task_id TEXT NOT NULL REFERENCES tasks (id),
    part BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (task_id, part)
);

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '7')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
