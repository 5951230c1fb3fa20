-- Long texts of results, such as a document's Markdown, so that the row that each poll reads stays
-- small. Everything here is added: the release before this one still runs on the database. It shows
-- such a text as null, and its file as before.

-- The text as it stands in JSON, without its quotes, in parts of at most 65,536 characters.
CREATE TABLE task_texts (
    task_id TEXT NOT NULL REFERENCES tasks (id),
    part INTEGER NOT NULL,             -- from 0
    data BLOB NOT NULL,
    PRIMARY KEY (task_id, part)
) STRICT;

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '5')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
