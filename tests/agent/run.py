#!/usr/bin/env python3
"""The agent end to end: processes that talk to a scripted server over real HTTP, in each of the four
formats. After each test every request was valid, the session renders valid, and nothing that was
typed is lost.

    tests/agent/run.py DRIVER [NAME]...
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server import FORMATS, Server, breaks_off, fails, hints, redirects, refuses_in_pieces, says, silent, stalls, stays_open  # noqa: E402

DRIVER = ""


class Case(unittest.TestCase):
    format = None

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.server = None
        self.typed = []

    def tearDown(self):
        try:
            if self.server:
                self.after()
        finally:
            if self.server:
                self.server.close()
            self.dir.cleanup()

    # ---- What is done

    def script(self, *acts):
        if self.server:
            self.server.acts += acts
        else:
            self.server = Server(self.format, acts)

    def command(self, *words):
        return [DRIVER, self.format, self.server.url + self.server.suffix, f"jsonl:{self.dir.name}/store", *words]

    def environment(self, settings):
        keys = {k: "secret" for k in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")}
        return dict(os.environ, **keys, **{k: str(v) for k, v in settings.items()})

    def drive(self, *words, status=0, **settings):
        if words[0] == "run":
            self.typed.append(words[1])
        done = subprocess.run(self.command(*words), env=self.environment(settings), timeout=30,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, status, done.stdout)
        self.assertNotIn("secret", done.stdout)
        return done.stdout

    def kill_when(self, ready, *words):
        """Runs the driver and kills it when it has said something, or when that many requests came."""
        self.typed.append(words[1])
        process = subprocess.Popen(self.command(*words), env=self.environment({}), text=True,
                                   stdout=subprocess.PIPE)
        try:
            if isinstance(ready, int):
                until = time.monotonic() + 10
                while len(self.server.requests) < ready and time.monotonic() < until:
                    time.sleep(0.01)
                self.assertEqual(len(self.server.requests), ready)
            else:
                self.assertTrue(any(said.startswith(ready) for said in process.stdout))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()

    # ---- What is looked at

    def path(self):
        return self.drive("path").splitlines()

    def after(self):
        self.assertEqual(self.server.problems, [])
        self.assertEqual(self.server.acts, [], "not all of the script was played")
        for number, body in enumerate(self.server.requests):
            name = f"{self.dir.name}/request-{number}"
            with open(name, "wb") as file:
                file.write(body)
            done = subprocess.run([DRIVER, self.format, name, "-", "check"],
                                  stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + body.decode())
        said = self.path()
        for text in self.typed:
            self.assertIn(f"user {text}", said)
        for fmt in FORMATS:
            done = subprocess.run([DRIVER, fmt, "-", f"jsonl:{self.dir.name}/store", "render"],
                                  stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)


class Turns:
    """One set of tests for each format."""

    def says(self, *args, **more):
        return says(self.format, *args, **more)

    def test_turns(self):
        self.script(self.says("Hello there"), self.says("Fine"))
        said = self.drive("run", "Hi")
        self.assertIn("delta Hello\ndelta  there\n", said.replace("delta Hello \ndelta there", "delta Hello\ndelta  there"))
        self.assertIn("turn completed steps=1 retries=0 compacted=0 input=100 output=7", said)
        self.drive("run", "How are you?", STREAM=0)
        self.assertEqual(self.path(), ["user Hi", "assistant Hello there", "user How are you?", "assistant Fine"])

    def test_tools(self):
        calls = [("call_1", "echo", {"n": 1}), ("call_2", "echo", {"n": "zwei"})]
        self.script(self.says("Let me see", calls), self.says("", calls[:1]), self.says("Seen"))
        said = self.drive("run", "Look")
        self.assertIn("turn completed steps=3", said)
        self.assertIn("input=300 output=21", said)
        path = self.path()
        self.assertEqual(len(path), 7, path)
        self.assertEqual(path[-1], "assistant Seen")
        self.assertIn("zwei", path[3])
        self.script(self.says("", calls), self.says("Again"))
        self.drive("run", "Once more", STREAM=0)

    def test_overflow(self):
        self.script(self.says("Long ago " * 200), fails(self.format, "overflow"), self.says("A summary"), self.says("Now"))
        self.drive("run", "Before " * 200 + "end")
        said = self.drive("run", "After", KEEP=20)
        self.assertIn("compacting overflow", said)
        self.assertIn("turn completed steps=1 retries=0 compacted=1", said)
        self.assertLess(len(self.server.requests[3]), len(self.server.requests[1]) // 2)
        self.assertEqual(self.path()[-1], "assistant Now")

    def test_overflow_twice(self):
        self.script(self.says("Long ago " * 200), fails(self.format, "overflow"), self.says("A summary"), fails(self.format, "overflow"))
        self.drive("run", "Before " * 200 + "end")
        said = self.drive("run", "After", KEEP=20, status=1)
        self.assertIn("turn failed", said)
        self.assertIn("error CONTEXT", said)

    def test_compacts_in_time(self):
        self.script(self.says("Long ago " * 400, tokens=1900), self.says("A summary"), self.says("Now"))
        self.drive("run", "Before " * 400 + "end")
        said = self.drive("run", "After", KEEP=20, WINDOW=2000)
        self.assertIn("compacting threshold", said)
        self.assertIn("turn completed steps=1 retries=0 compacted=1", said)

    def test_backoff(self):
        self.script(fails(self.format, "rate", [("Retry-After", "1")]), fails(self.format, "server"), self.says("Finally"))
        said = self.drive("run", "Hi")
        self.assertIn("turn completed steps=1 retries=2", said)
        times = self.server.times
        self.assertGreater(times[1] - times[0], 0.95)
        self.assertLess(times[2] - times[1], 5)
        self.script(*[fails(self.format, "server")] * 5)
        said = self.drive("run", "Still there?", status=1)
        self.assertIn("error MODEL", said)

    def test_refused(self):
        self.script(fails(self.format, "auth"))
        said = self.drive("run", "Hi", status=1)
        self.assertIn("error DENIED", said)

    def test_cut_stream(self):
        self.script(breaks_off(self.format, "Half of it"), breaks_off(self.format, "Half of it", abrupt=False), self.says("All of it"))
        said = self.drive("run", "Hi")
        self.assertIn("turn completed steps=1 retries=2", said)
        self.assertEqual(self.path(), ["user Hi", "assistant All of it"])

    def test_stalled_stream(self):
        self.script(stalls(self.format, "Half of it", 10), silent(10), self.says("All of it"))
        began = time.monotonic()
        said = self.drive("run", "Hi", IDLE_MS=700, FIRST_MS=700)
        self.assertLess(time.monotonic() - began, 8)
        self.assertIn("turn completed steps=1 retries=2", said)
        self.assertEqual(self.path(), ["user Hi", "assistant All of it"])

    def test_killed_before_the_reply(self):
        self.script(silent(10), self.says("Here I am"))
        self.kill_when(1, "run", "Are you there?")
        said = self.drive("continue")
        self.assertIn("interrupted", said)
        self.assertEqual(self.path(), ["user Are you there?", "assistant Here I am"])

    def test_killed_in_a_tool(self):
        calls = [("call_1", "echo", {"n": 1}), ("call_2", "slow", {})]
        self.script(self.says("One moment", calls), self.says("Back again"))
        self.kill_when("tool slow", "run", "Try")
        said = self.drive("run", "What happened?")
        self.assertIn("interrupted", said)
        path = self.path()
        self.assertEqual(path[3], "tool interrupted")
        self.assertEqual(path[-1], "assistant Back again")

    def test_killed_anywhere(self):
        """A turn of three requests, killed after some milliseconds, again and again."""
        chance = random.Random(self.format)
        for number in range(8):
            self.script(self.says("One", [(f"call_{number}a", "echo", {"n": number})]),
                        self.says("Two", [(f"call_{number}b", "echo", {})]), self.says("Three"))
            process = subprocess.Popen(self.command("run", f"Try {number}"), env=self.environment({}),
                                       stdout=subprocess.PIPE)
            time.sleep(chance.uniform(0.005, 0.06))
            process.kill()
            process.communicate()
            self.server.acts.clear()
            if f"user Try {number}" in self.path():
                self.typed.append(f"Try {number}")
        time.sleep(0.1)  # requests of the dead may still arrive; they had no script
        self.server.problems.clear()
        self.script(self.says("Whole again"))
        self.drive("run", "And now?")
        said = self.path()
        self.assertEqual(len(said), len(set(s for s in said if s.startswith("user"))) +
                         len([s for s in said if not s.startswith("user")]), "said twice")

    def test_cancel(self):
        self.script(stalls(self.format, "Half of it", 10), self.says("", [("call_1", "slow", {})]), self.says("Well"))
        began = time.monotonic()
        said = self.drive("run", "Hi", CANCEL_MS=100, status=1)
        self.assertLess(time.monotonic() - began, 8)
        self.assertIn("turn cancelled", said)
        late = int(re.search(r"^late (\d+)$", said, re.M).group(1))
        self.assertLess(late, 1000)  # 100 ms on a machine that has time
        self.assertEqual(self.path(), ["user Hi", "assistant Half "])
        self.drive("run", "Run it", CANCEL_MS=100, status=1)
        self.assertEqual(self.path()[-1], "tool interrupted")
        self.drive("run", "Go on")

    def test_suspend(self):
        calls = [("call_1", "ask", {"what": "permission"}), ("call_2", "echo", {})]
        self.script(self.says("May I?", calls), self.says("Thanks"))
        said = self.drive("run", "Do it")
        self.assertIn("turn suspended", said)
        self.assertIn("pending call_1", said)
        self.typed.pop()
        self.drive("run", "Now", status=1)
        self.typed = ["Do it"]
        said = self.drive("resume", "call_1", "granted")
        self.assertIn("turn completed", said)
        self.assertIn("input=200", said)
        self.assertEqual(self.path()[-2:], ["tool granted", "assistant Thanks"])


class Test_client(Case):
    """Where the client goes, what it shows there, and what it does not take."""

    format = "openai-chat"

    def opens(self, address, status=1, **settings):
        env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
        done = subprocess.run([DRIVER, self.format, address, "-", "open"], text=True,
                              env=dict(env, **settings), stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_addresses(self):
        self.assertIn("DENIED there is no key", self.opens("-"))
        self.opens("-", 0, OPENAI_API_KEY="x")
        self.assertIn("the key has characters", self.opens("-", OPENAI_API_KEY="x\ny: z"))
        self.assertIn("DENIED", self.opens("http://example.com"))
        self.assertIn("DENIED", self.opens("http://127.0.0.1.example.com"))
        self.assertIn("DENIED", self.opens("http://localhost.example.com/"))
        self.opens("http://example.com", 0, ANY_HTTP="1")
        for local in ("http://localhost:1/v1", "http://127.0.0.1:1", "http://[::1]:1", "https://example.com"):
            self.opens(local, 0)
        for bad in ("ftp://localhost", "http://", "nonsense", "http://user:word@localhost", "file:///etc/passwd"):
            self.assertIn("INVALID", self.opens(bad))
        for bad in ("novalue", "a b: c", "X: a\r\nY: b", ": x"):
            self.assertIn("INVALID", self.opens("http://localhost", HEADER=bad))

    def test_version_said_twice(self):
        self.script(says(self.format, "Hi"), says(self.format, "Ho"))
        self.server.suffix = "/v1/"
        self.drive("run", "a")
        self.server.suffix = "/"
        self.drive("run", "b")

    def test_own_header(self):
        self.script(says(self.format, "Hi"))
        self.drive("run", "a", HEADER="X-Mine: yes")
        self.assertEqual(self.server.headers[0]["x-mine"], "yes")
        self.assertEqual(self.server.headers[0]["authorization"], "Bearer secret")
        self.assertNotIn("expect", self.server.headers[0])

    def test_key_in_pieces(self):
        self.script(refuses_in_pieces(['{"error":{"message":"bad key sec', 'ret, no sec', 'r', 'et, se secret"}}']))
        self.assertIn("bad key ******, no ******, se ******", self.drive("run", "a", status=1))

    def test_key_of_the_caller(self):
        self.script(refuses_in_pieces(['{"error":{"message":"bad key hidden"}}']))
        said = self.drive("run", "a", status=1, HEADER="authorization: Bearer hidden")
        self.assertIn("bad key ******", said)
        self.server.problems.clear()  # it misses the key it knows

    def test_early_hints(self):
        self.script(hints(says(self.format, "Hi"), 1.5))
        self.assertIn("retries=0", self.drive("run", "a", IDLE_MS=500, FIRST_MS=20000))

    def test_proxy_is_no_answer(self):
        proxy = socket.create_server(("127.0.0.1", 0))

        def connect():
            peer = proxy.accept()[0]
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            peer.recv(4096)
            time.sleep(3)
            peer.close()

        threading.Thread(target=connect, daemon=True).start()
        self.script()
        where = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        said = subprocess.run([DRIVER, self.format, "https://example.invalid", f"jsonl:{self.dir.name}/store", "run", "a"],
                              env=self.environment({"https_proxy": where, "IDLE_MS": 300, "FIRST_MS": 1000}), timeout=30,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        proxy.close()
        self.assertIn("does not answer", said)
        self.assertNotIn("in the middle", said)

    def test_redirect(self):
        other = Server(self.format, [says(self.format, "never")])
        self.script(redirects(307, other.url + "/v1/chat/completions"))
        self.assertIn("307", self.drive("run", "a", status=1))
        self.assertEqual(other.requests, [])
        other.close()

    def test_too_long(self):
        self.script(says(self.format, "x" * 5000))
        self.assertIn("TOO_LARGE", self.drive("run", "a", REPLY_MAX=2000, status=1))

    def test_stays_open(self):
        self.script(stays_open(self.format, "All of it", 10))
        began = time.monotonic()
        self.assertIn("turn completed", self.drive("run", "a"))
        self.assertLess(time.monotonic() - began, 8)

    def test_retry_after_forms(self):
        soon = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))
        self.script(fails(self.format, "rate", [("retry-after-ms", "300"), ("Retry-After", "30")]),
                    fails(self.format, "rate", [("Retry-After", soon)]), says(self.format, "Hi"))
        self.drive("run", "a")
        times = self.server.times
        self.assertTrue(0.25 < times[1] - times[0] < 10)
        self.assertTrue(0.5 < times[2] - times[1] < 10)
        self.script(fails(self.format, "rate", [("Retry-After", "3600")]))
        self.assertIn("error MODEL", self.drive("run", "b", status=1))

    def test_nobody_there(self):
        self.script()
        self.server.server_close()
        said = self.drive("run", "a", status=1)
        self.assertEqual(said.count("retry"), 4)
        self.assertIn("error MODEL", said)

    def test_proxy_not_for_this_machine(self):
        self.script(says(self.format, "Hi"))
        self.drive("run", "a", http_proxy="http://127.0.0.1:1", all_proxy="http://127.0.0.1:1")


class Test_example(Case):
    """examples/agent.c does what it says."""

    format = "anthropic"

    def run_example(self, text):
        example = os.path.join(os.path.dirname(DRIVER), "example_agent")
        command = [example, f"{self.dir.name}/store", "test-model", text, self.server.url]
        return subprocess.run(command, env=self.environment({}), timeout=30, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def test_example(self):
        self.script(says("anthropic", "", [("call_1", "clock", {})]), says("anthropic", "It is late"),
                    says("anthropic", "As I said"))
        self.assertEqual(self.run_example("What time is it?"),
                         "[clock]\nIt is late\n(completed, 200 tokens in, 14 out)\n")
        self.assertIn("As I said", self.run_example("Again?"))
        self.assertIn("It is late", self.server.requests[2].decode())

    def after(self):
        self.assertEqual(self.server.problems, [])


def load_tests(loader, *_):
    suite = unittest.TestSuite()
    suite.addTests(loader.loadTestsFromTestCase(Test_client))
    suite.addTests(loader.loadTestsFromTestCase(Test_example))
    for fmt in FORMATS:
        made = type("Test_" + fmt.replace("-", "_"), (Turns, Case), {"format": fmt})
        suite.addTests(loader.loadTestsFromTestCase(made))
    return suite


if __name__ == "__main__":
    DRIVER = sys.argv.pop(1)
    unittest.main()
