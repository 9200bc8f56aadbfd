-- To version 2: clusters that were deleted are still known by name.

CREATE TABLE deleted (
    cluster TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;

PRAGMA user_version = 2;
