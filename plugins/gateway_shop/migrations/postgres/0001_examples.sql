CREATE TABLE shop_examples (
    slug TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    text TEXT,
    width BIGINT,
    height BIGINT,
    digest TEXT,
    large BYTEA,
    card BYTEA,
    thumb BYTEA,
    CHECK ((text IS NULL) = (large IS NOT NULL))
);
