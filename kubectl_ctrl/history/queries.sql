-- Every query of this room, by name. Parameters are bound; a type is selected by group and plural, in any version.

-- name: add_run
INSERT INTO run (name, cluster, began, seen, document) VALUES (:name, :cluster, :began, :began, :document);

-- name: find_run
SELECT id FROM run WHERE name = ? AND began = ?;

-- name: name_runs
SELECT DISTINCT name FROM run;

-- name: place_runs
SELECT cluster, document FROM run ORDER BY began DESC, id DESC;

-- name: touch_run
-- A sign of life, the number of dropped values, and the end of the run.
UPDATE run SET seen = max(seen, :seen), gaps = :gaps, ended = :ended WHERE id = :run;

-- name: add_type
INSERT INTO type (cluster, grp, version, plural, kind, namespaced, singular, short_names)
VALUES (:cluster, :grp, :version, :plural, :kind, :namespaced, :singular, :short_names)
ON CONFLICT DO UPDATE SET kind = excluded.kind, namespaced = excluded.namespaced,
    singular = iif(excluded.singular = '', singular, excluded.singular),
    short_names = iif(excluded.singular = '', short_names, excluded.short_names)
RETURNING id;

-- name: add_subject
INSERT INTO subject (type, controller, namespace, name) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET name = name RETURNING id;

-- name: add_object
INSERT INTO object (uid, type, namespace, name) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET name = name RETURNING id;

-- name: add_attempt
-- Once when it begins and once when it ends; the row keeps its id.
INSERT INTO attempt (run, number, controller, started, took, outcome, calls, writes, document, bodies)
VALUES (:run, :number, :controller, :started, :took, :outcome, :calls, :writes, :document, :bodies)
ON CONFLICT DO UPDATE SET took = excluded.took, outcome = excluded.outcome, calls = excluded.calls,
    writes = excluded.writes, document = excluded.document,
    bodies = excluded.bodies
RETURNING id;

-- name: find_attempt
SELECT id FROM attempt WHERE run = ? AND number = ?;

-- name: add_about
-- The UID may become known only at the end of the attempt; a known one stays.
INSERT INTO about (subject, attempt, uid) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET uid = iif(excluded.uid = '', uid, excluded.uid);

-- name: add_link
INSERT OR IGNORE INTO link (object, version, role, attempt, call) VALUES (?, ?, ?, ?, ?);

-- name: add_sent
INSERT OR REPLACE INTO sent (attempt, call, document) VALUES (?, ?, ?);

-- name: drop_sent
DELETE FROM sent WHERE attempt = ?;

-- name: add_later
INSERT INTO later (run, number, kind, document) VALUES (?, ?, ?, ?);

-- name: add_body
-- Stored once; a later read of the same object extends its life.
INSERT INTO body (object, version, digest, seen, data) VALUES (:object, :version, :digest, :seen, :data)
ON CONFLICT DO UPDATE SET seen = max(seen, excluded.seen)
RETURNING id;

-- name: put_state
INSERT INTO moment (run, controller, state) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state;

-- name: put_tally
INSERT INTO moment (run, controller, tally) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET tally = excluded.tally;

-- name: list_runs
SELECT id, name, began, seen, ended, gaps, document FROM run
WHERE :cluster IN ('', cluster)
ORDER BY began DESC, id DESC;

-- name: add_deleted
-- A second deletion completes the first, which was interrupted.
INSERT INTO deleted (cluster, name, provider, at) VALUES (:cluster, :name, :provider, :at) ON CONFLICT DO NOTHING;

-- name: list_deleted
SELECT cluster, name, provider, at FROM deleted;

-- name: stand_in_2
-- For reading version 1, which has no deletions.
CREATE TEMP TABLE deleted (cluster, name, provider, at);

-- name: list_types
SELECT grp, version, plural, kind, namespaced, singular, short_names FROM type
WHERE :cluster IN ('', cluster)
ORDER BY id;

-- name: list_subjects
-- The requested objects of each controller, with the newest attempt of each.
SELECT s.controller, t.grp, t.version, t.plural, t.kind, t.namespaced, s.namespace, s.name,
    count(*) AS attempts, sum(a.outcome IN ('retry', 'terminal')) AS failures, min(a.started) AS first,
    max(a.id) AS last
FROM subject s JOIN type t ON t.id = s.type JOIN about b ON b.subject = s.id JOIN attempt a ON a.id = b.attempt
WHERE t.cluster = :cluster AND :controller IN ('', s.controller) AND :namespace IN ('', s.namespace)
    AND (:plural = '' OR (t.plural = :plural AND t.grp = :grp))
GROUP BY s.id
ORDER BY t.grp, t.plural, s.namespace, s.name, s.controller;

-- name: find_clusters
-- The clusters with an object: as a request of a controller, or met by an attempt.
SELECT DISTINCT t.cluster FROM type t
WHERE t.grp = :grp AND t.plural = :plural AND (
    EXISTS (SELECT 1 FROM subject s JOIN about b ON b.subject = s.id
        WHERE s.type = t.id AND s.namespace = :namespace AND s.name = :name)
    OR EXISTS (SELECT 1 FROM object o JOIN link l ON l.object = o.id
        WHERE o.type = t.id AND o.namespace = :namespace AND o.name = :name))
ORDER BY t.cluster;

-- name: list_uids
-- The objects of one name: those that attempts were for, and those that attempts only met.
SELECT DISTINCT b.uid FROM type t JOIN subject s ON s.type = t.id JOIN about b ON b.subject = s.id
WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural
    AND s.namespace = :namespace AND s.name = :name AND b.uid <> ''
UNION
SELECT o.uid FROM type t JOIN object o ON o.type = t.id
WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural
    AND o.namespace = :namespace AND o.name = :name AND EXISTS (SELECT 1 FROM link l WHERE l.object = o.id);

-- name: list_lived
-- The same, the newest first, with their attempts: this reads the attempts of all of them.
WITH met (uid, attempt) AS (
    SELECT b.uid, b.attempt FROM type t JOIN subject s ON s.type = t.id JOIN about b ON b.subject = s.id
    WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural
        AND s.namespace = :namespace AND s.name = :name AND b.uid <> ''
    UNION
    SELECT o.uid, l.attempt FROM type t JOIN object o ON o.type = t.id JOIN link l ON l.object = o.id
    WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural
        AND o.namespace = :namespace AND o.name = :name
)
SELECT met.uid, min(a.started), max(a.started), count(DISTINCT a.id) FROM met JOIN attempt a ON a.id = met.attempt
GROUP BY met.uid
ORDER BY max(a.started) DESC, max(a.id) DESC;

-- name: list_attempts
-- The newest first, for the last N; -1 is all. They are selected by id, without reading the documents of the others.
SELECT a.id, r.id, r.name, a.number, a.outcome, a.took, a.document, chosen.uid
FROM (
    SELECT b.attempt, b.uid FROM type t JOIN subject s ON s.type = t.id JOIN about b ON b.subject = s.id
    WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural AND s.namespace = :namespace AND s.name = :name
        AND :uid IN ('', b.uid) AND :controller IN ('', s.controller) AND b.attempt > :after
        AND ((:run = '' AND :since <= 0) OR EXISTS (
            SELECT 1 FROM attempt a JOIN run r ON r.id = a.run
            WHERE a.id = b.attempt AND a.started >= :since AND :run IN ('', r.name)
        ))
    ORDER BY b.attempt DESC
    LIMIT :last
) chosen JOIN attempt a ON a.id = chosen.attempt JOIN run r ON r.id = a.run
ORDER BY a.id DESC;

-- name: count_about
-- By run. An attempt with an unknown UID counts for every object of its name.
SELECT r.id, count(*), coalesce(sum(a.writes), 0), coalesce(sum(a.outcome IN ('retry', 'terminal')), 0),
    sum(a.outcome IS NULL), min(a.started)
FROM type t JOIN subject s ON s.type = t.id JOIN about b ON b.subject = s.id
    JOIN attempt a ON a.id = b.attempt JOIN run r ON r.id = a.run
WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural AND s.namespace = :namespace AND s.name = :name
    AND (:uid = '' OR b.uid IN ('', :uid)) AND :controller IN ('', s.controller) AND a.started >= :since
GROUP BY r.id;

-- name: list_controllers
-- All attempts of a controller.
SELECT a.id, r.id, r.name, a.number, a.outcome, a.took, a.document,
    (SELECT max(b.uid) FROM about b WHERE b.attempt = a.id)
FROM attempt a JOIN run r ON r.id = a.run
WHERE r.cluster = :cluster AND a.controller = :controller
ORDER BY a.id;

-- name: list_related
SELECT a.id, r.id, r.name, a.number, a.outcome, a.took, a.document,
    (SELECT max(b.uid) FROM about b WHERE b.attempt = a.id)
FROM attempt a JOIN run r ON r.id = a.run
WHERE r.cluster = :cluster
    AND a.id IN (SELECT l.attempt FROM object o JOIN link l ON l.object = o.id WHERE o.uid = :uid)
ORDER BY a.id;

-- name: get_attempt
-- Of the newest run of that name.
SELECT a.id, r.id, r.name, a.number, a.outcome, a.took, a.document,
    (SELECT max(b.uid) FROM about b WHERE b.attempt = a.id)
FROM attempt a JOIN run r ON r.id = a.run
WHERE r.name = :run AND a.number = :number AND :cluster IN ('', r.cluster)
ORDER BY r.began DESC
LIMIT 1;

-- name: get_attempts
SELECT a.id, r.id, r.name, a.number, a.outcome, a.took, a.document,
    (SELECT max(b.uid) FROM about b WHERE b.attempt = a.id)
FROM attempt a JOIN run r ON r.id = a.run
WHERE a.id IN (SELECT value FROM json_each(:ids));

-- name: attempt_row
SELECT a.id FROM attempt a JOIN run r ON r.id = a.run WHERE r.name = :run AND a.number = :number
ORDER BY r.began DESC LIMIT 1;

-- name: list_sent
SELECT attempt, document FROM sent WHERE attempt IN (SELECT value FROM json_each(:ids)) ORDER BY attempt, length(call), call;

-- name: list_later
SELECT number, kind, document FROM later WHERE run = :run AND number BETWEEN :first AND :last ORDER BY id;

-- name: find_writer
SELECT r.name, a.number, l.call
FROM object o JOIN link l ON l.object = o.id JOIN attempt a ON a.id = l.attempt JOIN run r ON r.id = a.run
WHERE o.uid = :uid AND l.version = :version AND l.role = 1 AND r.cluster = :cluster
ORDER BY a.id, length(l.call), l.call
LIMIT 1;

-- name: list_woken
SELECT r.name, a.number
FROM object o JOIN link l ON l.object = o.id JOIN attempt a ON a.id = l.attempt JOIN run r ON r.id = a.run
WHERE o.uid = :uid AND l.version = :version AND l.role = 0 AND r.cluster = :cluster
ORDER BY a.id;

-- name: get_body
SELECT b.data FROM object o JOIN type t ON t.id = o.type JOIN body b ON b.object = o.id
WHERE o.uid = :uid AND b.version = :version AND t.cluster = :cluster
-- A shorter form has the metadata alone.
ORDER BY length(b.data) DESC
LIMIT 1;

-- name: get_bodies
SELECT id, data FROM body WHERE id IN (SELECT value FROM json_each(:ids));

-- name: bodies_of
SELECT a.bodies FROM attempt a JOIN run r ON r.id = a.run
WHERE r.name = :run AND a.number = :number AND :cluster IN ('', r.cluster)
ORDER BY r.began DESC
LIMIT 1;

-- name: pruned
SELECT pruned FROM upkeep;

-- name: list_moments
SELECT r.name, m.state, m.tally FROM moment m JOIN run r ON r.id = m.run
WHERE :cluster IN ('', r.cluster) AND :run IN ('', r.name) AND m.state IS NOT NULL
ORDER BY r.began DESC, r.id DESC, m.controller;

-- name: count_done
-- By run and controller.
SELECT run, controller, count(*), sum(outcome IN ('retry', 'terminal')), sum(outcome IS NULL), sum(writes), min(started),
    max(started)
FROM attempt
WHERE started < :before
GROUP BY run, controller
ORDER BY run, controller;

-- name: count_runs
SELECT count(*) FROM run;

-- name: count_attempts
SELECT count(*) FROM attempt;

-- name: doomed_attempts
-- The oldest first, run by run. Running attempts stay, and so do those of the newest run unless it is active now.
SELECT a.id FROM run r JOIN attempt a ON a.run = r.id
WHERE a.started < :before AND :cluster IN ('', r.cluster) AND (a.outcome IS NOT NULL OR a.started < :lost)
    AND (:runs = '[]' OR r.name IN (SELECT value FROM json_each(:runs)))
    AND (NOT :newest OR r.id <> (SELECT id FROM run ORDER BY began DESC, id DESC LIMIT 1)
        OR (r.ended IS NULL AND r.seen >= :lately AND :before < r.seen))
ORDER BY r.began, r.id, a.started
LIMIT :most;

-- name: drop_later_of
DELETE FROM later WHERE (run, number) = (SELECT run, number FROM attempt WHERE id = ?);

-- name: drop_about_of
DELETE FROM about WHERE attempt = ?;

-- name: drop_link_of
DELETE FROM link WHERE attempt = ?;

-- name: drop_attempt
DELETE FROM attempt WHERE id = ?;

-- name: count_pruned
UPDATE upkeep SET pruned = pruned + 1;

-- name: drop_bodies
-- All remaining attempts of their cluster began too late to refer to them.
WITH oldest (cluster, at) AS (
    SELECT r.cluster, min((SELECT min(a.started) FROM attempt a WHERE a.run = r.id)) FROM run r GROUP BY r.cluster
)
DELETE FROM body WHERE id IN (
    SELECT b.id FROM body b JOIN object o ON o.id = b.object JOIN type t ON t.id = o.type
        LEFT JOIN oldest ON oldest.cluster = t.cluster
    WHERE b.seen < coalesce(oldest.at, :now) - :slack
);

-- name: drop_runs
DELETE FROM run
WHERE seen < :lately AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.run = run.id)
    AND id <> (SELECT id FROM run ORDER BY began DESC, id DESC LIMIT 1);

-- name: drop_empty_runs
DELETE FROM run
WHERE name IN (SELECT value FROM json_each(:runs)) AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.run = run.id);

-- name: drop_deleted
DELETE FROM deleted WHERE cluster NOT IN (SELECT cluster FROM run);

-- name: drop_moments
DELETE FROM moment WHERE run NOT IN (SELECT id FROM run);

-- name: drop_later
-- Rows of deleted runs; and of the other runs, the rows without an attempt except for the last ones.
DELETE FROM later WHERE run NOT IN (SELECT id FROM run) OR (number = 0 AND id <= (
    SELECT other.id FROM later other WHERE other.run = later.run AND other.number = 0
    ORDER BY other.id DESC LIMIT 1 OFFSET :most
));

-- name: drop_subjects
DELETE FROM subject WHERE NOT EXISTS (SELECT 1 FROM about b WHERE b.subject = subject.id);

-- name: drop_objects
DELETE FROM object WHERE NOT EXISTS (SELECT 1 FROM link l WHERE l.object = object.id)
    AND NOT EXISTS (SELECT 1 FROM body b WHERE b.object = object.id);

-- name: drop_types
DELETE FROM type WHERE cluster NOT IN (SELECT cluster FROM run)
    AND NOT EXISTS (SELECT 1 FROM subject s WHERE s.type = type.id)
    AND NOT EXISTS (SELECT 1 FROM object o WHERE o.type = type.id);


-- For completion: names alone, few of them, newest first.

-- name: hint_runs
SELECT name, cluster, document FROM run ORDER BY began DESC, id DESC LIMIT :most;

-- name: hint_types
SELECT t.grp, t.plural, t.kind, t.namespaced, max(t.singular), max(t.short_names),
    EXISTS (SELECT 1 FROM subject s WHERE s.type = t.id) AS asked
FROM type t
WHERE t.cluster = :cluster AND (asked OR EXISTS (SELECT 1 FROM object o WHERE o.type = t.id))
GROUP BY t.grp, t.plural
ORDER BY asked DESC, t.plural, t.grp
LIMIT :most;

-- name: hint_names
SELECT name, max(asked) FROM (
    SELECT s.name AS name, s.id AS asked FROM type t JOIN subject s ON s.type = t.id
    WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural AND s.namespace = :namespace
    UNION ALL
    SELECT o.name, 0 FROM type t JOIN object o ON o.type = t.id
    WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural AND o.namespace = :namespace
)
WHERE substr(name, 1, length(:prefix)) = :prefix
GROUP BY name
ORDER BY max(asked) DESC, name
LIMIT :most;

-- name: hint_attempts
SELECT r.name, a.number, a.controller, a.outcome,
    coalesce((SELECT s.name FROM about b JOIN subject s ON s.id = b.subject WHERE b.attempt = a.id LIMIT 1), '')
FROM attempt a JOIN run r ON r.id = a.run
WHERE r.cluster = :cluster AND a.outcome IS NOT NULL
    AND substr(r.name || '-' || a.number, 1, length(:prefix)) = :prefix
ORDER BY a.id DESC
LIMIT min(:most, 50);

-- name: hint_numbers
SELECT r.name, a.number, a.controller, coalesce(a.outcome, 'runs'), s.name
FROM type t JOIN subject s ON s.type = t.id JOIN about b ON b.subject = s.id
    JOIN attempt a ON a.id = b.attempt JOIN run r ON r.id = a.run
WHERE t.cluster = :cluster AND t.grp = :grp AND t.plural = :plural AND s.namespace = :namespace AND s.name = :name
ORDER BY a.id DESC
LIMIT min(:most, 50);
