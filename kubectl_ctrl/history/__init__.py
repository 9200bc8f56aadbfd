"""Recordings: what runs did, kept in one SQLite database, and read back by whoever asks later.

Belongs here: the only SQLite. The schema and its migrations, every query (queries.sql), the writer with its one thread,
the reader, caps and pruning.
Does not belong here: knowing what a controller is, what a recording means (`findings`), how anything is shown, and
which cluster a command line means.

What is promised: a run is never harmed by its recording, whatever happens to the file; an attempt is in it whole, or as
interrupted; a process that dies takes at most the last 100 ms with it; what was dropped is counted; and nothing of a
Secret but names and versions ever reaches the file.
"""
