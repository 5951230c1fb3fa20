-- The leases of a task that ended without its end, for the operator: JSON of `AttemptRecord`, at most
-- about 36. The end is in the task's other columns, so a task that succeeds at once has none.
ALTER TABLE tasks ADD COLUMN attempts TEXT;
-- When the lease began (Unix seconds). NULL: none, or one of an earlier release.
ALTER TABLE tasks ADD COLUMN begun_at REAL;

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
