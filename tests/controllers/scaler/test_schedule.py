"""When events are: cron texts, zones and clock changes, against a reference that goes minute by minute."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_ctrl.controllers.scaler.schedule import (
    Action,
    BadSchedule,
    Cron,
    Event,
    Schedule,
    first_after,
    instant,
    last_before,
    latest,
    parse_cron,
    parse_zone,
    upcoming,
)
from tests.controllers.scaler.stage import HOUR, at
from tests.objects import present

BERLIN, SAO_PAULO, LORD_HOWE = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Sao_Paulo"), ZoneInfo("Australia/Lord_Howe")
MINUTE = 60.0
DAY = 24 * HOUR


def schedule(start: str = "", stop: str = "", zone: str = "UTC", name: str = "main") -> Schedule:
    return Schedule(
        name=name,
        zone=parse_zone(zone),
        start=parse_cron(start) if start else None,
        stop=parse_cron(stop) if stop else None,
    )


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def time(event: Event | None) -> str:
    assert event is not None
    return f"{event.action} {event.time}"


# --- a reference without croniter: every minute of wall time, asked whether it is meant


def matches(cron: Cron, wall: datetime) -> bool:
    values = (wall.minute, wall.hour, wall.day, wall.month, wall.isoweekday() % 7)
    meant = [
        field == "*" or value in map(int, field.split(","))
        for field, value in zip(cron.plain.split(), values, strict=True)
    ]
    day = meant[2] or meant[4] if cron.both_days else meant[2] and meant[4]
    return meant[0] and meant[1] and day and meant[3]


def minutes(zone: ZoneInfo, begin: float, end: float) -> Iterator[tuple[float, list[datetime]]]:
    """Each minute from begin to end, with the wall times that mean it: none in a second pass, many after a gap."""
    seen = datetime.fromtimestamp(begin - DAY, zone).replace(tzinfo=None, fold=0)
    moment = begin - DAY
    while moment <= end:
        wall = datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)
        new = []
        while seen < wall:
            seen += timedelta(minutes=1)
            new.append(seen)
        if moment >= begin:
            yield moment, new
        moment += MINUTE


crons = st.builds(
    lambda minute, hour, day, month, weekday: f"{minute} {hour} {day} {month} {weekday}",
    st.sampled_from(["0", "30", "*/15", "*", "59", "0,45", "10-20/3"]),
    st.sampled_from(["*", "2", "0", "23", "1-3", "*/6", "2,3", "22-23"]),
    st.sampled_from(["*", "*", "*", "1", "28-31", "29"]),
    st.sampled_from(["*", "*", "3,10", "2-4"]),
    st.sampled_from(["*", "*", "mon-fri", "0", "sat-sun", "7", "5-1"]),
)
# Around these moments the clocks change, or a leap day comes.
MOMENTS = [
    (BERLIN, "2026-03-29T00:30Z"),
    (BERLIN, "2026-10-25T00:30Z"),
    (SAO_PAULO, "2018-11-04T02:00Z"),
    (SAO_PAULO, "2019-02-17T01:00Z"),
    (LORD_HOWE, "2026-04-04T14:30Z"),
    (LORD_HOWE, "2026-10-03T15:00Z"),
    (ZoneInfo("UTC"), "2028-02-29T00:00Z"),
    (ZoneInfo("Pacific/Apia"), "2011-12-30T09:30Z"),
]


@given(text=crons, moment=st.sampled_from(MOMENTS), offset=st.integers(-36 * 60, 36 * 60))
@example(text="* * * * *", moment=MOMENTS[1], offset=31)
@example(text="30 2 * * *", moment=MOMENTS[0], offset=0)
def test_minute_by_minute_it_agrees_with_a_naive_reference(
    text: str, moment: tuple[ZoneInfo, str], offset: int
) -> None:
    zone, around = moment
    begin, end = at(around) + offset * MINUTE, at(around) + offset * MINUTE + 3 * HOUR
    cron = parse_cron(text)
    fires = [minute for minute, walls in minutes(zone, begin, end) if any(matches(cron, wall) for wall in walls)]
    found, now = [], begin - 1
    while (now := first_after(cron, zone, now)) <= end:
        found.append(now)
    assert found == fires
    for minute in fires:
        assert last_before(cron, zone, minute) == minute
        assert last_before(cron, zone, minute + 59) == minute
    for one, two in pairwise(fires):
        assert last_before(cron, zone, two - 1) == one


@given(start=crons, stop=crons, zone=st.sampled_from([BERLIN, LORD_HOWE]), hours=st.integers(0, 24 * 300))
def test_what_holds_is_the_latest_event_and_next_is_the_first(
    start: str, stop: str, zone: ZoneInfo, hours: int
) -> None:
    now = at("2026-01-01T00:00Z") + hours * HOUR + 17
    one = Schedule(name="main", zone=zone, start=parse_cron(start), stop=parse_cron(stop))
    past, coming = latest([one], now), upcoming([one], now)
    assert past is not None
    assert coming is not None
    assert past.at <= now < coming.at
    between = present(latest([one], coming.at - 1))
    assert (between.at, between.action) == (past.at, past.action), "nothing happens between the two"
    then = present(latest([one], coming.at))
    assert (then.at, then.action) == (coming.at, coming.action)


# --- complaints about the peers


def test_the_next_event_rule_of_keda_4677_is_wrong_and_this_is_not() -> None:
    """Up at 06:30 on weekdays, down at 22:10 every day: the weekend is down, whichever event comes next."""
    one = schedule("30 6 * * 1-5", "10 22 * * *")
    held = {
        "2026-01-09T12:00Z": Action.START,  # Friday
        "2026-01-09T22:11Z": Action.STOP,
        "2026-01-10T12:00Z": Action.STOP,  # Saturday
        "2026-01-11T22:11Z": Action.STOP,  # Sunday
        "2026-01-12T06:31Z": Action.START,  # Monday
    }
    for moment, action in held.items():
        event = present(latest([one], at(moment)))
        assert event.action is action, moment


def test_a_window_over_midnight_holds_on_the_morning_after() -> None:
    """Monday to Friday 23:30 to 09:30, which kube-downscaler never matches."""
    one = schedule("30 23 * * 1-5", "30 9 * * 2-6")
    assert time(latest([one], at("2026-01-10T03:00Z"))) == "start 2026-01-09T23:30:00Z"
    assert time(latest([one], at("2026-01-10T09:30Z"))) == "stop 2026-01-10T09:30:00Z"


def test_a_week_has_no_end() -> None:
    assert parse_cron("0 0 * * sun-fri").plain == "0 0 * * 0,1,2,3,4,5"
    assert parse_cron("0 0 * * sat-sun").plain == "0 0 * * 0,6"
    assert parse_cron("0 0 * * 5-1").plain == "0 0 * * 0,1,5,6"
    assert parse_cron("0 0 * * 7").plain == "0 0 * * 0"
    assert parse_cron("0 0 * * 1-7").plain == "0 0 * * *"


def test_odd_cron_the_31st_of_december_is_not_the_1st() -> None:
    one = schedule(stop="0 0 31 12 *")
    assert time(upcoming([one], at("2026-11-15T00:00Z"))) == "stop 2026-12-31T00:00:00Z"


def test_odd_cron_either_day_is_enough_where_both_are_restricted() -> None:
    cron = parse_cron("0 0 13 * fri")
    assert cron.both_days
    assert not parse_cron("0 0 1-31 * fri").both_days
    found, now = [], at("2026-01-01T00:00Z")
    for _ in range(4):
        now = first_after(cron, ZoneInfo("UTC"), now)
        found.append(datetime.fromtimestamp(now, UTC).day)
    assert found == [2, 9, 13, 16]


def test_schedules_of_one_object_may_be_in_different_zones() -> None:
    both = [schedule("0 9 * * *", zone="Asia/Tokyo", name="tokyo"), schedule(stop="0 9 * * *", zone="Europe/Berlin")]
    assert time(upcoming(both, at("2026-01-05T00:00Z"))) == "stop 2026-01-05T08:00:00Z"
    assert time(latest(both, at("2026-01-05T00:00Z"))) == "start 2026-01-05T00:00:00Z"


# --- F40: clock changes


def test_f40_a_wall_time_in_the_gap_is_the_first_instant_after_it() -> None:
    assert instant(wall("2026-03-29T02:30"), BERLIN) == at("2026-03-29T01:00Z")
    # Midnight does not exist on that day in Brazil, and half an hour is missing on Lord Howe.
    assert instant(wall("2018-11-04T00:00"), SAO_PAULO) == at("2018-11-04T03:00Z")
    assert instant(wall("2026-10-04T02:15"), LORD_HOWE) == at("2026-10-03T15:30Z")
    # A whole day is.
    assert instant(wall("2011-12-30T12:00"), ZoneInfo("Pacific/Apia")) == at("2011-12-30T10:00Z")


def test_f40_a_wall_time_that_comes_twice_is_the_first_and_fires_once() -> None:
    assert instant(wall("2026-10-25T02:30"), BERLIN) == at("2026-10-25T00:30Z")
    cron = parse_cron("30 2 * * *")
    assert first_after(cron, BERLIN, at("2026-10-25T00:30Z")) == at("2026-10-26T01:30Z")
    assert last_before(cron, BERLIN, at("2026-10-25T01:45Z")) == at("2026-10-25T00:30Z")
    assert last_before(parse_cron("45 1 * * *"), LORD_HOWE, at("2026-04-04T15:20Z")) == at("2026-04-04T14:45Z")


@pytest.mark.parametrize(("month", "utc"), [(1, 6), (7, 5)])
def test_timezone_seven_oclock_stays_seven_oclock_in_summer(month: int, utc: int) -> None:
    begin = datetime(2026, month, 5, tzinfo=UTC).timestamp()
    assert first_after(parse_cron("0 7 * * *"), BERLIN, begin) == begin + utc * HOUR


def test_f40_the_29th_of_february_waits_for_its_year() -> None:
    cron = parse_cron("0 12 29 2 *")
    assert first_after(cron, ZoneInfo("UTC"), at("2026-01-01T00:00Z")) == at("2028-02-29T12:00Z")
    assert last_before(cron, ZoneInfo("UTC"), at("2028-02-29T11:59Z")) == at("2024-02-29T12:00Z")
    # 2100 has none, so eight years pass.
    assert first_after(cron, ZoneInfo("UTC"), at("2096-03-01T00:00Z")) == at("2104-02-29T12:00Z")


def test_f40_a_machine_without_time_zones_has_the_bundled_ones() -> None:
    path = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[])
    ZoneInfo.clear_cache()
    try:
        assert instant(wall("2026-07-01T12:00"), parse_zone("Europe/Berlin")) == at("2026-07-01T10:00Z")
    finally:
        zoneinfo.reset_tzpath(to=path)
        ZoneInfo.clear_cache()


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "Europe", "", "../../etc/passwd", "localtime", "right/UTC", "a\x00b"]
)
def test_f40_a_zone_that_is_not_known_is_an_error_and_never_utc(name: str) -> None:
    with pytest.raises(BadSchedule, match="not a known time zone"):
        parse_zone(name)


# --- F41: two at one minute


def test_f41_at_one_minute_a_start_wins_and_the_stop_is_named() -> None:
    one = schedule("0 7 * * *", "0 * * * *")
    event = present(latest([one], at("2026-01-05T07:30Z")))
    assert (event.action, [rival.action for rival in event.rivals]) == (Action.START, [Action.STOP])
    later = present(latest([one], at("2026-01-05T08:00Z")))
    assert (later.action, later.rivals) == (Action.STOP, ())


@pytest.mark.parametrize("turned", [False, True])
def test_f41_of_two_starts_the_schedule_that_is_listed_first_wins(turned: bool) -> None:
    listed = [schedule("0 7 * * *", name="one"), schedule("0 7 * * *", name="two")]
    if turned:
        listed.reverse()
    event = present(latest(listed, at("2026-01-05T12:00Z")))
    assert event.schedule.name == listed[0].name
    assert [rival.schedule.name for rival in event.rivals] == [listed[1].name]


# --- M18: texts that are none


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 7 * *", "has 4 fields, expected 5"),
        ("0 0 7 * * *", "has 6 fields, expected 5"),
        ("", "has 0 fields"),
        ("60 * * * *", "has '60' in field 1 (minute), which is out of range; allowed: 0-59."),
        ("0 24 * * *", "field 2 (hour), which is out of range; allowed: 0-23."),
        ("0 0 0 * *", "field 3 (day of month), which is out of range; allowed: 1-31."),
        ("0 0 1 13 *", "field 4 (month), which is out of range; allowed: 1-12 or jan-dec."),
        ("0 0 * * 8", "field 5 (day of week), which is out of range; allowed: 0-7 or sun-sat."),
        ("0 0 * * mo", "field 5 (day of week), which is not a value"),
        ("0 0 * * xyz", "which is not a known name"),
        ("0 0 * jan-xyz *", "which is not a known name"),
        ("0 mon * * *", "field 2 (hour), which is not a number"),
        ("*/0 * * * *", "whose step is out of range"),
        ("*/60 * * * *", "whose step is out of range"),
        ("0 20-8 * * *", "which runs backwards (write 20-23,0-8)"),
        ("*-5 * * * *", "which is not a range"),
        ("1,,2 * * * *", "has '' in field 1"),
        ("0 0 L * *", "has 'L' in field 3"),
        ("0 0 ? * *", "has '?' in field 3"),
        ("0 0 * * 5#2", "has '5#2' in field 5"),
        ("* * 31 2 *", "never fires: none of the months [2] has day 31"),
        ("0 0 31 4,6,9,11 *", "never fires: none of the months [4, 6, 9, 11] has day 31"),
        ("@evry", "is '@evry', which is not supported; write five fields"),
        ("@daily", "write five fields"),
        ("CRON_TZ=Europe/Berlin 0 7 * * *", "set it with the time-zone annotation"),
        ("TZ=UTC 0 7 * * *", "set it with the time-zone annotation"),
        ("0 7 * * * ; rm -rf /", "has 9 fields"),
        ("\x1b[31m 7 * * *", "has '\\x1b[31m' in field 1"),
        ("9" * 300, "has 300 characters"),
    ],
)
def test_m18_a_text_that_is_no_cron_is_told_field_and_range(text: str, told: str) -> None:
    with pytest.raises(BadSchedule) as caught:
        parse_cron(text)
    assert told in str(caught.value)


@given(st.text(max_size=30))
def test_m18_no_text_at_all_makes_anything_but_a_cron_or_a_clear_error(text: str) -> None:
    problem, cron = "", None
    try:
        cron = parse_cron(text)
    except BadSchedule as error:
        problem = str(error)
    assert problem.isprintable()
    assert cron is None or first_after(cron, BERLIN, 0.0) > 0.0


@given(crons)
def test_a_cron_means_the_same_when_it_is_written_out(text: str) -> None:
    plain = parse_cron(text).plain
    assert parse_cron(plain).plain == plain
