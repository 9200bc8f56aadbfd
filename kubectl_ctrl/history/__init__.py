"""Recordings: one SQLite database of runs, their attempts, calls and objects, written by runs and read by other verbs.

Belongs here: the only SQLite. The schema and its migrations, every query (queries.sql), the writer with its one thread,
the reader, caps and pruning.
Does not belong here: the meaning of a recording (`findings`), its layout (`render`), and the choice of a cluster
(`story`).

Promises: no error of the file affects a run; an attempt is recorded completely, or as interrupted; kill -9 loses at
most the last 100 ms; dropped values are counted; and of Secrets only names and versions reach the file.
"""
