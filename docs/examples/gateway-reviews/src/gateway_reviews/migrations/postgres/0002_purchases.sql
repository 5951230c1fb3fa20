-- Completed tasks, which their buyers may rate.
CREATE TABLE reviews_purchases (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id)
);
