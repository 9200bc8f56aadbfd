from __future__ import annotations

import pytest

from kubectl_ctrl.sandbox.crds import formats


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ("byte", "YWJj", "YWJ"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112"),
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-02-29T12:00:00.5+01:00", "2024-02-29T24:00:00Z"),
        ("duration", "1h30m", "1 parsec"),
        ("duration", "3 weeks", "x"),
        ("email", "A <a@example.com>", "a"),
        ("hexcolor", "#fff", "#ff"),
        ("hostname", "a.example.com", "-a.example.com"),
        ("ipv4", "10.0.0.1", "fd00::1"),
        ("ipv4", "010.000.0.1", "10.0.0.256"),
        ("ipv6", "fd00::1", "fe80::1%eth0"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("isbn10", "0321751043", "0321751044"),
        ("k8s-long-name", "a.b-c", "a..b"),
        ("k8s-short-name", "a-b", "a.b"),
        ("mac", "01:02:03:04:05:06", "01:02"),
        ("rgbcolor", "rgb(255, 0, 1)", "rgb(256,0,1)"),
        ("ssn", "123-45-6789", "123-456789-"),
        ("uri", "https://example.com/a?b#c", "example"),
        ("uuid", "a8098c1a-f86e-11da-bd1a-00112444be1e", "a8098c1a"),
        ("uuid4", "16fd2706-8baf-433b-82eb-8c7fada847da", "16fd2706-8baf-133b-82eb-8c7fada847da"),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    assert formats.fits(name, good)
    assert not formats.fits(name, bad)


def test_unknown_formats_are_ignored() -> None:
    assert formats.fits("odd", "anything")
    assert formats.unknown({"type": "string", "format": "odd"})
    assert not formats.unknown({"type": "integer", "format": "int32"})


@pytest.mark.parametrize(
    ("name", "kind", "number", "fits"),
    [
        ("int32", "integer", 2**31 - 1, True),
        ("int32", "integer", 2**31, False),
        ("", "integer", 1.5, False),
        ("int64", "integer", 2**63, False),
        ("float", "number", 1e39, False),
        ("double", "number", 1e39, True),
    ],
)
def test_ranges(name: str, kind: str, number: float, fits: bool) -> None:
    assert formats.in_range(name, kind, number) is fits
