"""Recordings with bytes changed by a disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history.reader import Recording
from tests.history.made import FOOS, begun, done, owned, read_of
from tests.history.test_writer import recording_of


def damage(path: Path) -> RecordingError | None:
    """The error of reading everything about an object, if any."""
    try:
        with Recording.open(path) as read:
            for one in read.attempts(cluster="c1", resource=FOOS, key=begun(1).request):
                read.replayable(one.id)
    except RecordingError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(30))
def test_f50_changed_bytes_are_reported_as_damage(tmp_path: Path, seed: int) -> None:
    """Anywhere: in the schema, in an index, in text that is then invalid UTF-8."""
    rng = Random(seed)
    objects = [owned("Foo", "web", "u-web", str(version), text="x" * 200) for version in range(20)]
    whole = recording_of(tmp_path, *(done(begun(at), reads=(read_of(objects[at]),)) for at in range(1, 20)))
    content = bytearray(whole.read_bytes())
    for _ in range(20):
        content[rng.randrange(len(content))] = rng.randrange(256)
    whole.write_bytes(content)
    error = damage(whole)
    assert error is None or ("corrupt" in error.message and "record export --all" in error.next_step)


def test_f50_a_changed_value_is_never_shown(tmp_path: Path) -> None:
    """SQLite does not notice a byte that changes inside a value."""
    objects = [owned("Foo", "web", "u-web", str(version), text="x" * 200) for version in range(3)]
    whole = recording_of(tmp_path, *(done(begun(at), reads=(read_of(objects[at]),)) for at in range(1, 3)))
    content = whole.read_bytes()
    with closing(sqlite3.connect(whole)) as connection:
        bodies = [(data, at) for (data,) in connection.execute("SELECT data FROM body") for at in range(len(data))]
        documents = [(data, 0) for (data,) in connection.execute("SELECT document FROM attempt")]
    assert len(documents) == 2
    assert len(bodies) > 100
    for data, at in [*bodies[::7], *documents]:
        assert content.count(data) == 1
        place = content.index(data) + at
        whole.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        assert "it is corrupt" in str(damage(whole))
