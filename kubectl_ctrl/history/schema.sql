-- One recording. Times are wall time in seconds; numbers inside are row ids, the names that people know stand once.
-- Whoever changes this adds a migration of the next number, and raises user_version with it.

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

-- What a controller was asked about, by place.
CREATE TABLE subject (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    type INTEGER NOT NULL,
    controller TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (type, namespace, name, controller)
);

-- An object that woke somebody, was read or was written, by UID.
CREATE TABLE object (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL,
    type INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (uid, type)
);
CREATE INDEX object_place ON object (type, namespace, name);

-- One reconcile. Without an outcome it runs, or its process died. `document` has all that is not looked for; `bodies`
-- the rows of what its reads and the answers to its wishes held, as [[rows of a read, ...], [row of an answer, ...]].
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

-- Which objects an attempt was asked about: one, except for controllers that are for several types.
CREATE TABLE about (
    subject INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    uid TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (subject, attempt)
) WITHOUT ROWID;
CREATE INDEX about_attempt ON about (attempt);

-- Versions that woke an attempt (role 0) or that its calls made (role 1): who caused what is a join of the two.
CREATE TABLE link (
    object INTEGER NOT NULL,
    version TEXT NOT NULL,
    role INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    call TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (object, version, role, attempt, call)
) WITHOUT ROWID;
CREATE INDEX link_attempt ON link (attempt);

-- Calls of attempts that have not ended, as they left or were answered; the ended ones have theirs in the document.
CREATE TABLE sent (
    attempt INTEGER NOT NULL,
    call TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (attempt, call)
) WITHOUT ROWID;

-- What came of an attempt after it had ended (number 0: of none): background calls (kind 0) and echoes (kind 1).
CREATE TABLE later (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    document BLOB NOT NULL
);
CREATE INDEX later_attempt ON later (run, number);

-- Objects as they were read or answered, once for each form of a version: zlib over JSON, and never a Secret.
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

-- How a controller of a run stood when it was last heard of.
CREATE TABLE moment (
    run INTEGER NOT NULL,
    controller TEXT NOT NULL,
    state BLOB,
    tally BLOB,
    PRIMARY KEY (run, controller)
) WITHOUT ROWID;

-- What a cluster that we made was called, by what it was made, and when it was deleted. `cluster` is as in a run.
CREATE TABLE deleted (
    cluster TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;

-- How often rows were taken away: whoever remembers row ids forgets them then.
CREATE TABLE upkeep (
    pruned INTEGER NOT NULL
);
INSERT INTO upkeep (pruned) VALUES (0);
