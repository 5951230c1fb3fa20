CREATE TABLE reviews_ratings (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id),
    stars INTEGER NOT NULL
);
