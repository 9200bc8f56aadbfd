"""The page of `trace -o html` in a real browser: looked at, clicked, zoomed, filtered, and used by keys alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.value import replace
from tests.browser.devtools import Page
from tests.render.stories import hostile, story

TIMELINE = "#timeline"
SHOWN = "document.querySelectorAll('tbody tr:not([hidden])').length"
TITLE = "(document.querySelector('#details h2') || {}).textContent || ''"
VIEW = "[timeline.from, timeline.to]"


def written(folder: Path, shown: Story) -> Path:
    file = folder / "trace.html"
    file.write_text("".join(export("html", shown)), encoding="utf-8")
    return file


@pytest.fixture
def sixty(page: Page, tmp_path: Path) -> Page:
    page.look_at(written(tmp_path, story(60)))
    page.settle()
    return page


def place_of(page: Page, attempt: str) -> tuple[float, float]:
    """Where an attempt is drawn."""
    x, y, _, _ = page.box(TIMELINE)
    dx, dy = page.run(
        f"(() => {{ const one = byId.get('{attempt}');"
        " return [(timeline.x(one.start) + timeline.x(one.end)) / 2, timeline.top(one) + 8]; })()"
    )
    return x + dx, y + dy


def length(page: Page) -> float:
    begin, end = page.run(VIEW)
    return float(end - begin)


def test_all_attempts_are_visible_at_first(sixty: Page) -> None:
    assert sixty.run(SHOWN) == sixty.run("timeline.inSight().length") == 60
    assert sixty.run("document.querySelector('#count').textContent") == "60 attempts"
    assert sixty.run("document.querySelector('#details').childElementCount") == 0
    # Something was painted: neither canvas is of one colour.
    for name in ("timeline", "overview"):
        painted = f"""(() => {{ const one = document.querySelector('#{name}');
            const bytes = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
            return new Set(new Uint32Array(bytes.buffer)).size; }})()"""
        assert sixty.run(painted) > 10


def test_a_click_shows_causes_calls_and_outcome(sixty: Page) -> None:
    sixty.click_at(*place_of(sixty, "r7f3-11"))
    assert sixty.run(TITLE) == "r7f3-11"
    text = sixty.run("document.querySelector('#details').innerText")
    for words in (
        "timer, 5s requested by r7f3-10",
        "status.observedGeneration",
        "kube-controller-manager or kubectl-ctrl-foo",
        "written by",
        "patch Deployment/web 200",
        "new version 1070",
        "spec.replicas",
        "get Foo default/web: 1 found",
        "1 event of its own writes ignored",
    ):
        assert words in text
    assert re.search(r"triggered r7f3-12 after 30s", text)
    assert sixty.run("document.querySelector('tr[aria-current]').dataset.i") == "10"


def test_causes_and_effects_lead_to_each_other(sixty: Page) -> None:
    sixty.click_at(*place_of(sixty, "r7f3-11"))
    sixty.click("#details .causes .jump")
    assert sixty.run(TITLE) == "r7f3-10"
    sixty.click("#details section:last-of-type .jump")
    assert sixty.run(TITLE) == "r7f3-11"
    sixty.click("#details [aria-label='Close']")
    assert sixty.run(TITLE) == ""


def test_a_row_and_an_address_show_it_too(page: Page, tmp_path: Path) -> None:
    file = written(tmp_path, story(60))
    page.look_at(file, fragment="#r7f3-4")
    assert page.run(TITLE) == "r7f3-4"
    page.click("tr[data-i='2'] td.why")
    assert page.run(TITLE) == "r7f3-3"
    page.click("tr[data-i='5'] a")
    assert page.run(TITLE) == "r7f3-6"
    assert page.run("location.hash") == "#r7f3-6"


def test_the_wheel_zooms_where_it_points(sixty: Page) -> None:
    x, y = place_of(sixty, "r7f3-30")
    whole = length(sixty)
    sixty.wheel(x, y, down=-500)
    assert length(sixty) < whole / 2
    assert place_of(sixty, "r7f3-30")[0] == pytest.approx(x, abs=3)
    begin, _ = sixty.run(VIEW)
    sixty.wheel(x, y, down=0, right=120)
    assert sixty.run(VIEW)[0] > begin
    sixty.wheel(x, y, down=5000)
    assert length(sixty) == pytest.approx(whole)


def test_dragging_moves_the_view_and_on_the_axis_chooses_it(sixty: Page) -> None:
    x, y, width, _ = sixty.box(TIMELINE)
    whole = length(sixty)
    sixty.drag((x + width * 0.4, y + 8), (x + width * 0.6, y + 8))
    chosen = length(sixty)
    assert whole * 0.1 < chosen < whole * 0.3
    begin, _ = sixty.run(VIEW)
    sixty.drag((x + width * 0.6, y + 60), (x + width * 0.4, y + 60))
    assert sixty.run(VIEW)[0] > begin
    assert length(sixty) == pytest.approx(chosen)
    assert sixty.run(TITLE) == ""  # a drag is no click


def test_the_overview_moves_the_view(sixty: Page) -> None:
    sixty.run("timeline.zoom(0.1)")
    x, y, width, height = sixty.box("#overview")
    sixty.click_at(x + width * 0.9, y + height / 2)
    assert sixty.run("timeline.inSight().every((one) => Number(one.number) > 45)")


def test_a_double_click_zooms_in(sixty: Page) -> None:
    x, y = place_of(sixty, "r7f3-20")
    sixty.click_at(x, y)
    sixty.click_at(x, y, count=2)
    assert sixty.run(TITLE) == "r7f3-20"
    assert length(sixty) < sixty.run("timeline.ruler.length") / 5
    assert sixty.run("timeline.inSight().some((one) => one.id === 'r7f3-20')")


def test_the_buttons_zoom(sixty: Page) -> None:
    whole = length(sixty)
    sixty.click("#zoom-in")
    assert length(sixty) == pytest.approx(whole / 2)
    sixty.click("#zoom-out")
    sixty.click("#zoom-in")
    sixty.click("#zoom-in")
    assert length(sixty) == pytest.approx(whole / 4)
    sixty.click("#fit")
    assert length(sixty) == pytest.approx(whole)


def test_outcomes_and_words_filter_the_timeline_and_the_table(sixty: Page) -> None:
    sixty.click(".chip.failed")
    assert sixty.run(SHOWN) == 3
    assert sixty.run("document.querySelector('#count').textContent") == "3 of 60 attempts"
    sixty.click(".chip.waiting")
    assert sixty.run(SHOWN) == 13
    sixty.click("#filter")
    sixty.write("403 forbidden")
    sixty.until(f"{SHOWN} === 3")
    assert sixty.run("attempts.filter((one) => one.wanted).every((one) => one.group === 'failed')")
    sixty.press("Escape")
    assert sixty.run(SHOWN) == 60
    assert sixty.run("document.querySelector('#filter').value") == ""
    assert sixty.run("document.activeElement.id") == "timeline"


def test_what_the_filter_hides_is_not_hit(sixty: Page) -> None:
    sixty.click(".chip.failed")
    sixty.click_at(*place_of(sixty, "r7f3-20"))
    assert sixty.run(TITLE) == ""


def test_controllers_filter_where_there_are_several(page: Page, tmp_path: Path) -> None:
    shown = story(40)
    mixed = [replace(one, controller="bar") if one.number % 2 else one for one in shown.attempts]
    page.look_at(written(tmp_path, replace(shown, attempts=tuple(mixed))))
    assert page.run("data.lanes") == ["bar", "foo"]
    page.run("(() => { const one = find('controller'); one.value = 'bar'; one.dispatchEvent(new Event('change')); })()")
    assert page.run(SHOWN) == 20


def test_keys_alone_are_enough(sixty: Page) -> None:
    for _ in range(40):
        sixty.press("Tab")
        if sixty.run("document.activeElement.id") == "timeline":
            break
    assert sixty.run("document.activeElement.id") == "timeline"
    sixty.press("ArrowRight")
    sixty.press("ArrowRight")
    assert sixty.run("timeline.selected.id") == "r7f3-2"
    assert sixty.run("find('said').textContent").startswith("r7f3-2: spec.replicas 3→4 by kubectl-edit. FAILED")
    sixty.press("Enter")
    assert (sixty.run(TITLE), sixty.run("document.activeElement.id")) == ("r7f3-2", "details")
    sixty.press("ArrowRight")
    assert sixty.run(TITLE) == "r7f3-3"
    sixty.press("Escape")
    assert (sixty.run(TITLE), sixty.run("document.activeElement.id")) == ("", "timeline")
    sixty.press("End")
    assert sixty.run("timeline.selected.id") == "r7f3-60"
    whole = length(sixty)
    sixty.press("+")
    assert length(sixty) < whole
    assert sixty.run("timeline.inSight().includes(timeline.selected)")
    sixty.press("-")
    sixty.press("0")
    assert length(sixty) == pytest.approx(whole)
    sixty.press("/")
    assert sixty.run("document.activeElement.id") == "filter"
    sixty.press("f")
    assert sixty.run("timeline.folded")  # in a field, letters are letters


def test_up_and_down_follow_causes(sixty: Page) -> None:
    sixty.click_at(*place_of(sixty, "r7f3-3"))
    sixty.press("ArrowUp")
    assert sixty.run(TITLE) == "r7f3-2"
    sixty.press("ArrowDown")
    sixty.press("ArrowDown")
    assert sixty.run(TITLE) == "r7f3-4"


def test_idle_time_folds_and_unfolds(sixty: Page) -> None:
    folded = sixty.run("timeline.ruler.length")
    sixty.press("f")
    assert sixty.run("timeline.ruler.length") > 100 * folded
    assert sixty.run("timeline.inSight().length") == 60
    assert sixty.run("find('fold').getAttribute('aria-pressed')") == "false"
    sixty.click("#fold")
    assert sixty.run("timeline.ruler.length") == folded


def test_lanes_are_of_objects_or_of_workers(page: Page, tmp_path: Path) -> None:
    page.look_at(written(tmp_path, story(80, objects=6)))
    page.settle()
    names = page.run("timeline.names")
    assert sorted(names) == ["shop-1", "shop-2", "shop-3", "shop-4", "shop-5", "web"]
    height = page.box(TIMELINE)[3]
    page.click_at(*place_of(page, "r7f3-40"))
    assert page.run(TITLE) == "r7f3-40"
    page.press("o")
    assert page.run("timeline.names") == ["foo 1", "foo 2"]
    assert page.box(TIMELINE)[3] < height
    page.click("#lanes")
    assert page.run("timeline.names") == names


def test_one_object_has_lanes_of_workers_only(sixty: Page) -> None:
    sixty.press("o")
    assert sixty.run("timeline.names") == ["foo"]
    assert sixty.run("find('lanes').hidden")


def test_times_are_in_the_requested_zone(sixty: Page) -> None:
    sixty.send("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    assert sixty.run("document.querySelector('time').textContent") == "12:00:00.001"
    sixty.click("#zone")
    assert sixty.run("document.querySelector('time').textContent") == "21:00:00.001"
    assert sixty.run("find('zone-name').textContent") == "local"
    sixty.click("#zone")
    assert sixty.run("document.querySelector('time').textContent") == "12:00:00.001"
    sixty.send("Emulation.setTimezoneOverride", timezoneId="UTC")


def test_the_keys_are_explained(sixty: Page) -> None:
    sixty.press("?")
    assert sixty.run("find('keyhelp').open")
    sixty.press("Escape")
    assert not sixty.run("find('keyhelp').open")


@pytest.mark.parametrize("width", [360, 400, 768, 1100, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off_at_any_width(page: Page, tmp_path: Path, width: int, scheme: str) -> None:
    page.media(scheme=scheme)
    page.look_at(written(tmp_path, story(40, objects=5)), fragment="#r7f3-5", width=width, height=900)
    assert page.run("document.documentElement.scrollWidth") <= width
    cells = """Array.from(document.querySelectorAll('tbody tr:first-child > *, #details *, .tools *'))
        .filter((one) => one.offsetParent && one.getBoundingClientRect().right > innerWidth + 1).length"""
    assert page.run(cells) == 0
    assert page.run("document.querySelector('td.out').getBoundingClientRect().width") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(page: Page, tmp_path: Path, scheme: str) -> None:
    """Text has a contrast of 4.5 to 1 at least."""
    page.media(scheme=scheme)
    page.look_at(written(tmp_path, story(3)))
    contrast = """(one, other) => {
        const light = (name) => { const parts = /^#(..)(..)(..)/.exec(timeline.color(name)).slice(1, 4).map((part) => {
            const value = parseInt(part, 16) / 255;
            return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; };
        const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05); }"""
    pairs = [("ink", "card"), ("soft", "card"), ("soft", "paper"), ("accent", "card"), ("added", "paper")]
    pairs += [("removed", "paper"), ("faint", "idle")]
    pairs += [("on-slice", name) for name in ("done", "waiting", "failed", "cut", "running", "write", "read")]
    found = {pair: page.run(f"({contrast})({pair[0]!r}, {pair[1]!r})") for pair in pairs}
    assert {pair: value for pair, value in found.items() if value < 4.5} == {}


def test_hostile_text_does_nothing(page: Page, tmp_path: Path) -> None:
    page.look_at(written(tmp_path, hostile()), fragment="#r7f3-1")
    page.settle()
    text = page.run("document.querySelector('#details').innerText")
    assert '</script><!--<b>"' in text
    assert "\\u202egpj.exe" in text
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run("(() => { const one = find('details'); return one.scrollWidth <= one.clientWidth; })()")
    page.click("#details [aria-label='Next attempt']")
    text = page.run("document.querySelector('#details').innerText")
    assert "interrupted" in text
    assert "***" in text


def test_of_five_thousand_attempts_only_what_can_be_seen_is_painted(page: Page, tmp_path: Path) -> None:
    page.look_at(written(tmp_path, story(5000, objects=40)))
    assert page.run(SHOWN) == 5000
    painted = """(() => { let count = 0; const own = timeline.drawSlice;
        timeline.drawSlice = (...words) => { count += 1; return own.apply(timeline, words); };
        timeline.draw(); delete timeline.drawSlice; return count; })()"""
    # Everything at once: no pixel is painted twice. Then a view as one works in: nothing is painted beside it.
    assert 40 < page.run(painted) < 2500
    page.run("timeline.zoom(0.02)")
    assert 0 < page.run(painted) <= page.run("timeline.inSight().length") < 250
    page.run("filter.text = 'forbidden'; applyFilter()")
    assert 0 < page.run(SHOWN) < 1000


def test_it_prints_all_rows_and_no_buttons(sixty: Page) -> None:
    sixty.media(kind="print")
    sixty.settle()
    assert sixty.run("getComputedStyle(document.querySelector('#tools')).display") == "none"
    assert sixty.run("Array.from(document.querySelectorAll('tbody tr')).every((one) => one.offsetHeight > 10)")


def test_without_scripts_the_table_is_there(page: Page, tmp_path: Path) -> None:
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.look_at(written(tmp_path, story(3)))
        tree = page.send("DOM.getDocument", depth=-1)["root"]
        found = page.send("DOM.querySelectorAll", nodeId=tree["nodeId"], selector="tbody tr[data-i]")
        hidden = page.send("DOM.querySelectorAll", nodeId=tree["nodeId"], selector="#tools[hidden], #drawn[hidden]")
        assert (len(found["nodeIds"]), len(hidden["nodeIds"])) == (3, 2)
    finally:
        page.send("Emulation.setScriptExecutionDisabled", value=False)


def test_a_page_without_attempts(page: Page, tmp_path: Path) -> None:
    page.look_at(written(tmp_path, replace(story(1), attempts=())))
    assert page.run("document.querySelector('#count').textContent") == "0 attempts"
    page.press("ArrowRight")
