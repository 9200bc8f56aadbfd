"""The schedule of a CronJob: five fields or a name such as @daily."""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: place + 1 for place, name in enumerate(_MONTHS)}),
    (0, 6, {name: place for place, name in enumerate(_DAYS)}),
)
_NAMED = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY = re.compile(r"@every [+-]?(\d+(\.\d*)?(ns|us|ms|s|m|h))+")


def error(schedule: str) -> str:
    """The reason why a schedule cannot be read; empty if it can."""
    text = re.sub(r"^(CRON_)?TZ=\S*\s+", "", schedule)
    if text.startswith("@"):
        return "" if text in _NAMED or _EVERY.fullmatch(text) else f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, (least, most, names) in zip(fields, _BOUNDS, strict=True):
            for part in filter(None, field.split(",")):
                _check(part, least, most, names)
    except ValueError as problem:
        return str(problem)
    return ""


def _check(part: str, least: int, most: int, names: dict[str, int]) -> None:
    around, *steps = part.split("/")
    ends = around.split("-")
    if ends[0] in ("*", "?"):
        first, last = least, most
    elif len(ends) > 2:
        raise ValueError(f"too many hyphens: {part}")
    else:
        first, last = _number(ends[0], names), _number(ends[-1], names)
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and len(ends) == 1:
        last = most
    wrong = (
        (first < least, f"beginning of range ({first}) below minimum ({least})"),
        (last > most, f"end of range ({last}) above maximum ({most})"),
        (first > last, f"beginning of range ({first}) beyond end of range ({last})"),
        (step == 0, "step of range should be a positive number"),
    )
    if said := next((words for broken, words in wrong if broken), ""):
        raise ValueError(f"{said}: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
