-- An order that another endpoint makes (a fallback). Until it ends, `slug` is the endpoint that makes
-- it, so every release leases, submits and polls it there; `sold_as` is the one that was bought. At
-- the end `slug` is the bought one, as in the books.
ALTER TABLE tasks ADD COLUMN sold_as TEXT;
-- The maker's slug, for ever. Both are NULL for an order that its own endpoint makes. And the model, if
-- the endpoint has a fallback, whoever makes it.
ALTER TABLE tasks ADD COLUMN made_by TEXT;
ALTER TABLE tasks ADD COLUMN made_model TEXT;
CREATE INDEX tasks_lent ON tasks (sold_as, payment_id) WHERE sold_as IS NOT NULL AND sold_as <> slug;
CREATE INDEX tasks_made_by ON tasks (made_by, created_at) WHERE made_by IS NOT NULL;

CREATE TRIGGER tasks_returned AFTER UPDATE OF status ON tasks
WHEN NEW.sold_as IS NOT NULL AND NEW.sold_as <> NEW.slug
    AND NEW.status IN ('completed', 'failed', 'dropped')
BEGIN
    UPDATE tasks SET slug = NEW.sold_as WHERE id = NEW.id;
END;
CREATE TRIGGER tasks_makers_do_not_change BEFORE UPDATE OF sold_as, made_by, made_model ON tasks
WHEN NEW.sold_as IS NOT OLD.sold_as OR NEW.made_by IS NOT OLD.made_by
    OR NEW.made_model IS NOT OLD.made_model
BEGIN
    SELECT RAISE(ABORT, 'the maker of an order never changes');
END;
CREATE TRIGGER tasks_slugs_do_not_change BEFORE UPDATE OF slug ON tasks
WHEN NEW.slug IS NOT OLD.slug
    AND (NEW.slug IS NOT NEW.sold_as OR NEW.status NOT IN ('completed', 'failed', 'dropped'))
BEGIN
    SELECT RAISE(ABORT, 'the maker of an order never changes');
END;

-- The fallbacks that operators chose. The newest row of a slug counts; NULL: none.
CREATE TABLE endpoint_fallbacks (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL,
    fallback TEXT CHECK (fallback <> slug),
    at REAL NOT NULL,
    action_id INTEGER NOT NULL REFERENCES operator_actions (id)
) STRICT;
CREATE INDEX endpoint_fallbacks_newest ON endpoint_fallbacks (slug, id);

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
