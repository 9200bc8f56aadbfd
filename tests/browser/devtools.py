"""A headless Chromium, driven by the DevTools protocol over a pipe: no port is open, no package is needed."""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 30.0
# --no-sandbox: tests run as root, where Chromium's own sandbox does not start; the page is one that we made.
# Names resolve to nothing: whatever tried to leave would fail, and be seen.
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)
# Chromium reads from descriptor 3 and writes to 4; a shell would not take a number of two digits for either.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
_NOWHERE = "--host-resolver-rules=MAP * ~NOTFOUND"

Fields = dict[str, Any]


class Page:
    """One page: what is done to it, and what it said."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._inbox: queue.Queue[Fields | None] = queue.Queue()
        self._number = 0
        self._session = ""
        self.events: list[Fields] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        rest = b""
        while piece := os.read(self._answers, 1 << 16):
            *whole, rest = (rest + piece).split(b"\0")
            for message in whole:
                self._inbox.put(json.loads(message))
        self._inbox.put(None)

    def send(self, method: str, **params: Any) -> Fields:
        """The result of a command; events that come before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._inbox.get(timeout=PATIENCE)
            if answer is None:
                raise RuntimeError("The browser ended.")
            if answer.get("id") != self._number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                result: Fields = answer["result"]
                return result

    def open(self) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def look_at(self, file: Path, *, fragment: str = "", width: int = 1280, height: int = 900) -> None:
        """Open a file and wait until it was drawn."""
        self.events.clear()
        self.resize(width, height)
        self.send("Page.navigate", url=file.as_uri() + fragment)
        self.heard("Page.loadEventFired")

    def resize(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, *, scheme: str = "light", kind: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)

    def run(self, expression: str) -> Any:
        """The value of an expression; promises are waited for."""
        done = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def heard(self, method: str) -> None:
        """Wait for an event."""
        while not any(event.get("method") == method for event in self.events):
            event = self._inbox.get(timeout=PATIENCE)
            if event is None:
                raise RuntimeError("The browser ended.")
            self.events.append(event)

    def until(self, condition: str) -> None:
        """Wait for a condition, looked at with every frame."""
        wait = f"""new Promise((yes, no) => {{
            const end = performance.now() + {PATIENCE * 1000};
            const look = () => ({condition}) ? yes() : performance.now() > end ? no("too late") : setTimeout(look, 5);
            look();
        }})"""
        self.run(wait)

    def settle(self) -> None:
        """Until what was asked for has been drawn."""
        self.run("new Promise((yes) => requestAnimationFrame(() => requestAnimationFrame(yes)))")

    def box(self, selector: str) -> tuple[float, float, float, float]:
        x, y, width, height = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x, box.y, box.width, box.height]; })()"
        )
        return x, y, width, height

    def click(self, selector: str) -> None:
        """In the middle of an element, after bringing it into sight."""
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        x, y, width, height = self.box(selector)
        self.click_at(x + width / 2, y + height / 2)

    def click_at(self, x: float, y: float, *, count: int = 1) -> None:
        """`count`: which click it is of several in quick succession."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=count)
        self.mouse("mouseReleased", x, y, button="left", clickCount=count)
        self.settle()

    def drag(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        self.mouse("mouseMoved", *begin)
        self.mouse("mousePressed", *begin, button="left", clickCount=1)
        for part in (0.25, 0.5, 1.0):
            x, y = (one + (other - one) * part for one, other in zip(begin, end, strict=True))
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)
        self.settle()

    def wheel(self, x: float, y: float, *, down: float, right: float = 0) -> None:
        self.mouse("mouseWheel", x, y, deltaX=right, deltaY=down)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **facts: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **facts)

    def press(self, key: str, *, shift: bool = False) -> None:
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        facts: Fields = {"key": key, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": codes.get(key, 0)}
        if len(key) == 1 or key == "Enter":
            facts["text"] = "\r" if key == "Enter" else key
        self.send("Input.dispatchKeyEvent", type="keyDown", **facts)
        self.send("Input.dispatchKeyEvent", type="keyUp", **{**facts, "text": ""})
        self.settle()

    def write(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def picture(self, file: Path) -> None:
        shot = self.send("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[Fields]:
        """Errors of scripts, of the console, and what the page's own policy refused."""
        self.run("0")
        bad = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    bad.append(params)
                case "Runtime.consoleAPICalled":
                    bad.append(params)
                case "Log.entryAdded":
                    bad.append(params["entry"])
        return bad

    def requests(self) -> list[str]:
        self.run("0")
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Page]:
    """A browser of its own, with an empty profile; it ends with the block."""
    (commands_out, commands_in), (answers_out, answers_in) = os.pipe(), os.pipe()
    ends = (str(commands_out), str(answers_in))
    command = [sys.executable, "-I", "-c", _LAUNCH, *ends, program, *_FLAGS, _NOWHERE, f"--user-data-dir={folder}"]
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            pass_fds=(commands_out, answers_in),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(folder), "TMPDIR": str(folder)},
        )
    os.close(commands_out)
    os.close(answers_in)
    page = Page(commands_in, answers_out)
    try:
        page.open()
        yield page
    finally:
        os.close(commands_in)  # which ends it
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(answers_out)
