"""A headless Chromium, spoken to over a pipe in its own protocol: nothing but Python is needed.

    with Browser() as browser:
        page = browser.open("file:///tmp/page.html")
        page.run("document.title")

A page notes everything that a harmless one has none of: errors, words on the console, dialogs,
requests for anything but itself, refusals by its policy, attempts to leave.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-extensions", "--mute-audio", "--hide-scrollbars",
    "--font-render-hinting=none", "--force-color-profile=srgb", "--renderer-process-limit=1", "--in-process-gpu", "--remote-debugging-pipe",
]
PATIENCE = 30  # seconds that one answer may take


def chromium():
    """The browser's command, or None."""
    return os.environ.get("SHEAF_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Failure(Exception):
    pass


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="sheaf-chromium-")
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def place():  # the protocol's pipe is at 3 and 4
            spare_in, spare_out = os.dup(to_read), os.dup(from_write)
            os.dup2(spare_in, 3)
            os.dup2(spare_out, 4)

        self.process = subprocess.Popen(
            [chromium(), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out, self.into = to_write, from_read
        self.rest, self.number, self.pages, self.context = b"", 0, {}, None
        self.call("Browser.getVersion")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.send("Browser.close", {}, None)
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, params, session):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        return self.number

    def receive(self, deadline):
        """The next message, or None when the time is over."""
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                return None
            data = os.read(self.into, 1 << 20)
            if not data:
                raise Failure("the browser has gone")
            self.rest += data
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def dispatch(self, message):
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.event(message["method"], message.get("params", {}))

    def call(self, method, session=None, **params):
        number = self.send(method, params, session)
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.receive(deadline)
            if message is None:
                raise Failure(f"no answer to {method}")
            if message.get("id") == number:
                if "error" in message:
                    raise Failure(f"{method}: {message['error']['message']}")
                return message["result"]
            self.dispatch(message)

    def listen(self, seconds):
        """Takes what comes for so long."""
        deadline = time.monotonic() + seconds
        while True:
            message = self.receive(deadline)
            if message is None:
                return
            self.dispatch(message)

    def forget(self):
        """From here on nothing is remembered of what was opened before, and that is closed."""
        if self.context:
            self.call("Target.disposeBrowserContext", browserContextId=self.context)
        self.pages.clear()
        self.context = self.call("Target.createBrowserContext")["browserContextId"]

    def open(self, url, width=1280, height=900, dark=False, scripts=True, scale=1):
        if not self.context:
            self.forget()
        target = self.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        self.pages[session] = page
        page.begin(width, height, dark, scripts, scale)
        page.go(url)
        return page


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target
        self.url = None
        self.loads = 0
        self.troubles = []

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def begin(self, width, height, dark, scripts, scale):
        for domain in ("Page", "Runtime", "Network", "Log", "Audits"):
            self.call(f"{domain}.enable")
        self.size(width, height, scale)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 600)

    def event(self, method, params):
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.troubles.append("error: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.troubles.append("console: " + str([a.get("value") for a in params["args"]]))
        elif method == "Log.entryAdded":
            self.troubles.append("log: " + params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.troubles.append("dialog: " + params["message"])
            self.browser.send("Page.handleJavaScriptDialog", {"accept": False}, self.session)
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url.split("#")[0] != self.url and not url.startswith("data:"):
                self.troubles.append("request: " + url)
        elif method == "Audits.issueAdded":
            if params["issue"]["code"] == "ContentSecurityPolicyIssue":
                self.troubles.append("policy: " + json.dumps(params["issue"]["details"]))
        elif method in ("Page.windowOpen", "Page.frameRequestedNavigation", "Page.downloadWillBegin"):
            self.troubles.append(f"{method}: {params.get('url')}")

    def go(self, url):
        self.url = url.split("#")[0]
        loads = self.loads
        self.call("Page.navigate", url=url)
        self.until(lambda: self.loads > loads, f"{url} to load")

    def reload(self):
        loads = self.loads
        self.call("Page.reload")
        self.until(lambda: self.loads > loads, "the page to load again")

    def until(self, test, what="something"):
        deadline = time.monotonic() + PATIENCE
        while not test():
            if time.monotonic() > deadline:
                raise Failure(f"waited in vain for {what}")
            self.browser.listen(0.02)

    def run(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failure(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, expression):
        self.until(lambda: self.run(expression), expression)

    def press(self, key, modifiers=0):
        named = {"Enter": 13, "Escape": 27, "Tab": 9}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else None)
        params = {"key": key, "windowsVirtualKeyCode": named.get(key, ord(key[0].upper())), "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **params, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, selector):
        """A real click in the middle of an element, once it lies still: what comes into view is
        laid out only then, and moves what is below it. One gets there by the wheel, so that the
        page goes no more where it was going."""
        at = []

        def still():
            at.append(self.run(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
                dispatchEvent(new Event("wheel")); e.scrollIntoView({{block: "center"}}); const r = e.getBoundingClientRect();
                const x = r.x + r.width / 2, y = r.y + r.height / 2;
                return [x, y, e.contains(document.elementFromPoint(x, y))]; }})()"""))
            return len(at) > 2 and at[-1] == at[-2] == at[-3] and at[-1][2]

        self.until(still, selector + " to lie still")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[-1][0], y=at[-1][1], button="left", clickCount=1)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]
