-- How often the gateway died while it worked on a task, and how many lone attempts at it have begun
-- in a row and not ended. Neither counts as an attempt.
ALTER TABLE tasks ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN lone_runs INTEGER NOT NULL DEFAULT 0;

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
