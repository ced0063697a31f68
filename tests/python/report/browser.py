"""A Chromium, driven through its debugging pipe: no port, no package.

Messages are JSON, each ended by a zero byte; the browser reads them from its file 3 and writes to its file 4.
"""

import base64
import json
import os
import select
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def wire():
            # Above what is overwritten, so that neither end is closed on the way.
            taken = [os.dup2(fd, 100 + i) for i, fd in enumerate((to_browser, from_browser))]
            for fd, place in zip(taken, (3, 4)):
                os.dup2(fd, place, inheritable=True)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions"]
        options += ["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--hide-scrollbars"]
        command = [program, *options, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.events, self.past = 0, b"", [], []
        target = self.call("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def message(self, until):
        while b"\0" not in self.rest:
            if not select.select([self.read_end], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise EOFError("the browser is gone")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session="own", seconds=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session == "own" and getattr(self, "session", None):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data) :]
        until = time.monotonic() + seconds
        while True:
            answer = self.message(until)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def wait_for(self, event, seconds=60):
        until = time.monotonic() + seconds
        while not any(known.get("method") == event for known in self.events):
            self.events.append(self.message(until))

    def open(self, path):
        """Opens a file and waits until it is loaded."""
        self.past = self.complaints()
        self.events.clear()
        self.url = "file://" + os.path.abspath(path)
        self.call("Page.navigate", url=self.url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, code, text=None):
        for kind in ("keyDown", "keyUp"):
            parameters = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            if text and kind == "keyDown":
                parameters["text"] = text
            self.call("Input.dispatchKeyEvent", **parameters)

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def media(self, media="", scheme="light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path, whole=True, most=30_000):
        box = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": box["width"], "height": min(box["height"], most), "scale": 1}
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **({"clip": clip} if whole else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def complaints(self):
        """All that went wrong or out: requests to elsewhere, errors, what the policy stopped."""
        found = list(self.past)
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if url != self.url and not url.startswith(self.url + "#"):
                    found.append(f"request: {url}")
            elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                found.append(f"{method}: {json.dumps(parameters)[:400]}")
            elif method == "Log.entryAdded":
                found.append(f"log: {json.dumps(parameters)[:400]}")
        return found
