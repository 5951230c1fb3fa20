-- Jobs at providers: a submit that is on its way, the job it began, and what it cost.

ALTER TABLE tasks ADD COLUMN handle TEXT;          -- JSON of the job: it is polled, never submitted
ALTER TABLE tasks ADD COLUMN sent_at REAL;         -- a submit was begun; NULL again once it failed
ALTER TABLE tasks ADD COLUMN note TEXT;            -- of its progress, for the operator
ALTER TABLE tasks ADD COLUMN cost_micros INTEGER;  -- to the operator, in 10⁻⁶ US dollars

-- The release before this one wrote no mark: what it held a lease of may have been submitted.
UPDATE tasks SET sent_at = coalesce(started_at, created_at)
    WHERE status = 'processing' AND lease_token IS NOT NULL;
