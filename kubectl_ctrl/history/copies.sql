-- The rows of a copy of runs or attempts. `chosen` and `chosen_run` are tables of the reading connection.

-- name: make_chosen
CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY);

-- name: make_chosen_run
CREATE TEMP TABLE chosen_run (id INTEGER PRIMARY KEY);

-- name: choose_runs
INSERT INTO chosen_run SELECT id FROM run
WHERE :cluster IN ('', cluster) AND (:every OR name IN (SELECT value FROM json_each(:runs)));

-- name: choose_attempts
INSERT INTO chosen SELECT a.id FROM attempt a JOIN run r ON r.id = a.run
WHERE r.id IN (SELECT id FROM chosen_run)
    OR (:cluster IN ('', r.cluster) AND r.name || '-' || a.number IN (SELECT value FROM json_each(:attempts)));

-- name: choose_runs_of
INSERT OR IGNORE INTO chosen_run SELECT run FROM attempt WHERE id IN (SELECT id FROM chosen);

-- name: copy_run
SELECT * FROM run WHERE id IN (SELECT id FROM chosen_run);

-- name: copy_deleted
SELECT * FROM deleted WHERE cluster IN (SELECT cluster FROM run WHERE id IN (SELECT id FROM chosen_run));

-- name: copy_type
SELECT * FROM type WHERE cluster IN (SELECT cluster FROM run WHERE id IN (SELECT id FROM chosen_run));

-- name: copy_attempt
SELECT * FROM attempt WHERE id IN (SELECT id FROM chosen);

-- name: copy_about
SELECT * FROM about WHERE attempt IN (SELECT id FROM chosen);

-- name: copy_subject
SELECT * FROM subject WHERE id IN (SELECT subject FROM about WHERE attempt IN (SELECT id FROM chosen));

-- name: copy_link
SELECT * FROM link WHERE attempt IN (SELECT id FROM chosen);

-- name: copy_sent
SELECT * FROM sent WHERE attempt IN (SELECT id FROM chosen);

-- name: copy_later
-- Calls without an attempt, such as those for leases, are copied with the run.
SELECT l.* FROM later l JOIN chosen_run r ON r.id = l.run
WHERE l.number = 0 OR EXISTS (
    SELECT 1 FROM attempt a WHERE a.run = l.run AND a.number = l.number AND a.id IN (SELECT id FROM chosen)
);

-- name: copy_moment
SELECT * FROM moment WHERE run IN (SELECT id FROM chosen_run);

-- name: copy_body
-- The bodies of the copied attempts. A blob is no JSON for older versions of SQLite, and binary JSON for newer ones.
SELECT * FROM body WHERE id IN (
    SELECT row.atom FROM attempt a, json_tree(CAST(a.bodies AS TEXT)) row
    WHERE a.id IN (SELECT id FROM chosen) AND length(a.bodies) > 0 AND row.type = 'integer'
);

-- name: copy_object
SELECT * FROM object WHERE id IN (SELECT object FROM link WHERE attempt IN (SELECT id FROM chosen))
    OR id IN (SELECT value FROM json_each(:objects));
