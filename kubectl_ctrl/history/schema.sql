-- One recording. Times are wall time in seconds. Tables refer to each other by row id; each name is stored once.
-- A change needs a migration with the next number, and a higher user_version here.

PRAGMA application_id = 1801680498;
PRAGMA user_version = 2;

-- One process that ran controllers. `cluster` is the UID of kube-system, or a hash of server and CA.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    began REAL NOT NULL,
    seen REAL NOT NULL,
    ended REAL,
    gaps INTEGER NOT NULL DEFAULT 0,
    document BLOB NOT NULL
);
CREATE INDEX run_name ON run (name);
CREATE INDEX run_cluster ON run (cluster, began);

-- A resource type that a cluster served.
CREATE TABLE type (
    id INTEGER PRIMARY KEY,
    cluster TEXT NOT NULL,
    grp TEXT NOT NULL,
    version TEXT NOT NULL,
    plural TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespaced INTEGER NOT NULL,
    singular TEXT NOT NULL DEFAULT '',
    short_names TEXT NOT NULL DEFAULT '',
    UNIQUE (cluster, grp, plural, version)
);

-- An object that a controller was requested to reconcile, by name.
CREATE TABLE subject (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    type INTEGER NOT NULL,
    controller TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (type, namespace, name, controller)
);

-- An object that triggered an attempt, was read or was written, by UID.
CREATE TABLE object (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL,
    type INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (uid, type)
);
CREATE INDEX object_place ON object (type, namespace, name);

-- One reconcile. Without an outcome it is running or interrupted. `document` has all fields that no query selects by;
-- `bodies` the rows of the objects that it read and was answered with: [[[row, ...] of each read], [row of each write]].
CREATE TABLE attempt (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    controller TEXT NOT NULL,
    started REAL NOT NULL,
    took REAL,
    outcome TEXT,
    calls INTEGER NOT NULL DEFAULT 0,
    writes INTEGER NOT NULL DEFAULT 0,
    document BLOB NOT NULL,
    bodies BLOB,
    UNIQUE (run, number)
);
CREATE INDEX attempt_started ON attempt (run, started, outcome);

-- The objects that an attempt was for: one, except for controllers of several primary types.
CREATE TABLE about (
    subject INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    uid TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (subject, attempt)
) WITHOUT ROWID;
CREATE INDEX about_attempt ON about (attempt);

-- Versions that triggered an attempt (role 0) or that its calls wrote (role 1). A join of the two gives causes.
CREATE TABLE link (
    object INTEGER NOT NULL,
    version TEXT NOT NULL,
    role INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    call TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (object, version, role, attempt, call)
) WITHOUT ROWID;
CREATE INDEX link_attempt ON link (attempt);

-- Calls of running attempts, sent or answered. The calls of ended attempts are in the document of the attempt.
CREATE TABLE sent (
    attempt INTEGER NOT NULL,
    call TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (attempt, call)
) WITHOUT ROWID;

-- Background calls (kind 0) and echoes (kind 1) after the end of an attempt; number 0: of no attempt.
CREATE TABLE later (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    document BLOB NOT NULL
);
CREATE INDEX later_attempt ON later (run, number);

-- Objects as read or answered, once for each form of a version: zlib over JSON, and never a Secret.
-- `seen`: no attempt that began more than ten minutes later refers to it.
CREATE TABLE body (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    object INTEGER NOT NULL,
    version TEXT NOT NULL,
    digest BLOB NOT NULL,
    seen REAL NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (object, version, digest)
);
CREATE INDEX body_seen ON body (seen);

-- The last recorded state of a controller of a run.
CREATE TABLE moment (
    run INTEGER NOT NULL,
    controller TEXT NOT NULL,
    state BLOB,
    tally BLOB,
    PRIMARY KEY (run, controller)
) WITHOUT ROWID;

-- A deleted managed cluster: its name, its provider and the time. `cluster` is as in a run.
CREATE TABLE deleted (
    cluster TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;

-- The number of deletions of rows: a writer forgets the row ids that it remembers when this changes.
CREATE TABLE upkeep (
    pruned INTEGER NOT NULL
);
INSERT INTO upkeep (pruned) VALUES (0);
