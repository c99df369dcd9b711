"""The agents themselves go on with what Sheaf exports.

Each case takes a session file that an agent wrote, imports it, adds a turn, and installs it for the
agent at hand, which is then run with its own option to resume, against a server that says one
sentence. What that server was asked must hold the whole conversation: texts in their order, calls
and answers with their ids, each once, and the new question at the end. Then the agent's own file
is imported, and the conversation has gone on.

    run.py --sheaf BIN --agents DIR [--short] [--only AGENT...] [--keep] [NAME...]

NAME is SOURCE-TARGET, or a part of it. --short: each agent with its own session and one other.
--only: these agents, what else is there is not looked at. Exit code 77 if no agent is there."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import model

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "import")
PROMPT = "What-did-we-do-last?"
REPLY = "We went on where we were."
ADDED = [("user", "One more thing, said in Sheaf"), ("assistant", "Noted in Sheaf.")]
TIMEOUT = 300  # on a machine that has much else to do


class Failed(Exception):
    pass


def check(what, is_so):
    if not is_so:
        raise Failed(what)


# ---------------------------------------------------------------- where sessions come from


def until(path, line_has):
    """A copy's lines before the first one that has this in it."""
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    at = next(i for i, line in enumerate(lines) if line_has in line)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines[:at])


class Source:
    """A session file as its agent left it, about another directory than then."""

    def __init__(self, name, agent, path, session, cut=None):
        self.name, self.agent, self.path, self.session, self.cut = name, agent, path, session, cut

    def put(self, where, project):
        """Where it lies then."""
        path = os.path.join(where, os.path.basename(self.path))
        with open(os.path.join(DATA, self.path), encoding="utf-8") as f:
            text = f.read()
        for old in ("/home/user/account/proj", "/home/user/project"):
            text = text.replace(old, project)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if self.cut:
            until(path, self.cut)
        return path


CODEX_NEW = "codex/0.166.0/sessions/2026/11/14/rollout-2026-11-14T22-59-50-01a1dc49-dd38-7103-bd23-2ca2f89caecb.jsonl"
CODEX_OLD = "codex/0.135.0/sessions/2026/11/14/rollout-2026-11-14T23-06-05-01a1dc4f-9557-7792-a2b4-583aecbc89a6.jsonl"
CLAUDE = "claude-code/2.1.197/projects/-home-user-project/"
PI = "pi/0.73.1/sessions/--home-user-project--/"
GEMINI = "gemini-cli/0.61.0/"
SOURCES = [
    Source("claude-code", "claude-code", CLAUDE + "6b061052-840f-47f7-97a7-d8e8872d7081.jsonl",
           "claude-code.6b061052-840f-47f7-97a7-d8e8872d7081"),
    Source("codex", "codex", CODEX_NEW, "codex.01a1dc49-dd38-7103-bd23-2ca2f89caecb", cut='"ordinal":103,'),
    Source("pi", "pi", PI + "2026-11-14T22-58-25-886Z_01a1dc48-91dd-754a-b727-3d8f61e55eff.jsonl",
           "pi.01a1dc48-91dd-754a-b727-3d8f61e55eff"),
    Source("gemini-cli", "gemini-cli", GEMINI + "before-compress/session-2026-11-14T23-02-caefd898.jsonl",
           "gemini-cli.caefd898-195c-44aa-a02f-2f8e07b71f6b"),
    Source("opencode", "opencode", "opencode/1.18.33/export_main.json", "opencode.ses_e23b5fa6cffeFJNzLxh0hGmYnD"),
    # The same conversations after a compaction, and files of older versions.
    Source("claude-code.compacted", "claude-code", CLAUDE + "11111111-1111-4111-8111-111111111111.jsonl",
           "claude-code.11111111-1111-4111-8111-111111111111"),
    Source("codex.compacted", "codex", CODEX_NEW, "codex.01a1dc49-dd38-7103-bd23-2ca2f89caecb"),
    Source("codex.old", "codex", CODEX_OLD, "codex.01a1dc4f-9557-7792-a2b4-583aecbc89a6"),
    Source("pi.compacted", "pi", PI + "2026-11-14T23-06-18-377Z_01a1dc4f-c788-72a9-a893-f5a44e60eaa8.jsonl",
           "pi.01a1dc4f-c788-72a9-a893-f5a44e60eaa8"),
    Source("gemini-cli.compacted", "gemini-cli", GEMINI + "after-compress/session-2026-11-14T23-02-caefd898.jsonl",
           "gemini-cli.caefd898-195c-44aa-a02f-2f8e07b71f6b"),
    Source("opencode.compacted", "opencode", "opencode/1.18.33/export_compacted.json",
           "opencode.ses_e23b5fa6cffeFJNzLxh0hGmYnD"),
]


# ---------------------------------------------------------------- the agents


class Agent:
    command = None  # below node_modules/.bin
    wire = "anthropic"

    def __init__(self, home, url):
        self.home, self.url = home, url

    def write(self, path, value):
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))

    def prepare(self):
        """Settings that lead it to the server and keep it from everything else; what is set in the
        environment."""
        return {}

    def own(self, case, path):
        """A session file as this agent has it that has it for its own."""
        return path

    def before(self, session):
        """Commands to run first."""
        return []

    def resume(self, session):
        raise NotImplementedError

    def after(self, session):
        """A command that writes down the session, where its own files are not to be read."""
        return None


class ClaudeCode(Agent):
    command = "claude"

    def prepare(self):
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def resume(self, session):
        return ["-p", PROMPT, "--resume", session, "--model", "claude-sonnet-4-5"]


class Codex(Agent):
    command = "codex"
    wire = "openai-responses"

    def prepare(self):
        # The sessions name their provider, and Codex wants it back.
        self.write(".codex/config.toml", f"""
model = "gpt-5.1-codex"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "{self.url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
[analytics]
enabled = false
""")
        return {"STUB_KEY": "none"}

    def resume(self, session):
        return ["exec", "--skip-git-repo-check", "resume", session, PROMPT]


class Pi(Agent):
    command = "pi"

    def prepare(self):
        models = [{"id": "claude-sonnet-4-5", "input": ["text", "image"]}]
        local = {"baseUrl": self.url, "apiKey": "none", "api": "anthropic-messages", "models": models}
        self.write(".pi/agent/models.json", {"providers": {"local": local}})
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}

    def resume(self, session):
        return ["-p", "--session", session, "--provider", "local", "--model", "claude-sonnet-4-5", PROMPT]


class GeminiCli(Agent):
    command = "gemini"
    wire = "gemini"

    def prepare(self):
        self.write(".gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False},
        })
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def resume(self, session):
        return ["--resume", session, "-p", PROMPT, "-m", "gemini-2.5-pro"]


class OpenCode(Agent):
    command = "opencode"

    def prepare(self):
        self.write(".config/opencode/opencode.json", {
            "autoupdate": False,
            "share": "disabled",
            "provider": {"local": {
                "npm": "@ai-sdk/anthropic",
                "name": "local",
                "options": {"baseURL": self.url + "/v1", "apiKey": "none"},
                "models": {"test": {"name": "test"}},
            }},
        })
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    def own(self, case, path):
        # It keeps the messages in a database, where their members have another order.
        case.run([case.bin, "import", path])
        case.write_out(["export", case.source.session.split(".", 1)[1]], path)
        return path

    def before(self, session):
        return [["import", session["file"]]]

    def resume(self, session):
        return ["run", "--session", session, "--model", "local/test", PROMPT]

    def after(self, session):
        return ["export", session]


AGENTS = {"claude-code": ClaudeCode, "codex": Codex, "pi": Pi, "gemini-cli": GeminiCli, "opencode": OpenCode}


# ---------------------------------------------------------------- what must be in a request


def plain(text):
    """A summary without the words that an agent, or Sheaf, puts around it."""
    inside = re.search(r"<summary>\n(.*)\n</summary>", text, re.DOTALL)
    return (inside.group(1) if inside else text).strip()


# How an agent words reminders, roles of another provider and what a user ran differs.
WORDED = ("[developer message]", "<system-reminder>", "[The user ran a command]")


def conversation(items):
    """What users, models and tools said. Answers to calls of one reply may come in any order."""
    kept = [i for i in items if i[0] != "text" or (i[1] in ("user", "assistant") and not i[2].startswith(WORDED))]
    at = 0
    while at < len(kept):
        end = at + 1
        while kept[at][0] == "result" and end < len(kept) and kept[end][0] == "result":
            end += 1
        kept[at:end] = sorted(kept[at:end])
        at = end
    return kept


def matches(want, got):
    if want[0] != got[0]:
        return False
    if want[0] == "text":
        return want[1] == got[1] and plain(want[2]) in got[2]
    if want[0] == "call":
        return want[1:] == got[1:]
    return want[1] == got[1] and want[2].strip() in got[2]


def check_history(want, got, doubles):
    """All of it in its order; between them an agent may put words of its own. `doubles`: it repeats
    answers that its own files have twice."""
    if doubles:
        got = [i for n, i in enumerate(got) if i[0] != "result" or i[1] not in [o[1] for o in got[:n] if o[0] == "result"]]
    rest = iter(got)
    for item in want:
        check(f"not there, or not in its place: {item}", any(matches(item, other) for other in rest))
    for kind in ("call", "result"):
        wanted, given = ([i[1] for i in items if i[0] == kind] for items in (want, got))
        check(f"{kind}s: {given} instead of {wanted}", sorted(given) == sorted(wanted))
    check(f"the question is not the last: {got[-1]}", got[-1][0] == "text" and got[-1][1] == "user" and PROMPT in got[-1][2])
    check("the question is there more than once", sum(PROMPT in i[2] for i in got if i[0] == "text") == 1)


# ---------------------------------------------------------------- a case


class Case:
    def __init__(self, options, source, target, root):
        self.sheaf_bin, self.source, self.target = options.sheaf, source, target
        self.bin = os.path.join(options.agents, target, "node_modules", ".bin", AGENTS[target].command)
        self.home = os.path.join(root, "home")
        self.project = os.path.join(self.home, "project")
        os.makedirs(self.project)
        self.server = model.Model(REPLY)
        self.agent = AGENTS[target](self.home, self.server.url)
        node = os.path.join(options.agents, "node", "bin")
        path = (node + os.pathsep if os.path.isdir(node) else "") + os.environ["PATH"]
        self.env = {"PATH": path, "HOME": self.home, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "NO_COLOR": "1", "TZ": "UTC"}

    def run(self, command):
        done = subprocess.run(command, env=self.env, cwd=self.project, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT, check=False)
        words = " ".join(os.path.basename(c) if i == 0 else c for i, c in enumerate(command))
        check(f"{words}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}", done.returncode == 0)
        return done.stdout

    def sheaf(self, *words):
        return self.run([self.sheaf_bin, *words])

    def context(self, session, fmt):
        """What is sent of a session."""
        body = json.loads(self.sheaf("context", session, "--format", fmt, "--model", "any", "-q"))
        return conversation(model.said(fmt, body))

    def play(self):
        where = os.path.join(self.home, "came")
        os.makedirs(where)
        self.env.update(self.agent.prepare())
        path = self.source.put(where, self.project)
        if self.source.agent == self.target:
            path = self.agent.own(self, path)
        self.sheaf("import", path, "-q")
        session = self.source.session
        for role, text in ADDED:
            self.sheaf("append", session, "-r", role, text, "-q")
        want = self.context(session, self.agent.wire)
        check(f"the fixture says too little: {len(want)}", len(want) >= 4)

        put = json.loads(self.sheaf("export", session, "--format", self.target, "--install", "--json"))
        again = json.loads(self.sheaf("export", session, "--format", self.target, "--install", "--json"))
        check(f"installed twice: {put} {again}", put["state"] == "new" and again["state"] == "same" and put["file"] == again["file"])

        for command in self.agent.before(put):
            self.run([self.bin, *command])
        said = self.run([self.bin, *self.agent.resume(put["id"])])
        check(f"it said: {said}", REPLY in said)
        asked = [model.said(fmt, body) for fmt, body in self.server.requests if fmt == self.agent.wire]
        asked = [items for items in asked if any(PROMPT in i[2] for i in items if i[0] == "text")]
        check(f"asked: {self.server.requests} {self.server.others}", asked)
        check_history(want, conversation(max(asked, key=len)), self.target == self.source.agent == "gemini-cli")
        self.take_back(put, want)

    def write_out(self, command, path):
        """What a command of the agent prints, from the first brace on, into a file."""
        text = self.run([self.bin, *command])
        with open(path, "w", encoding="utf-8") as f:
            f.write(text[text.index("{"):])

    def take_back(self, put, want):
        """The agent's own file: the session has grown, or is a new one that says the same."""
        file = put["file"]
        command = self.agent.after(put["id"])
        if command:
            file = os.path.join(self.home, "back.json")
            self.write_out(command, file)
        lines = [json.loads(line) for line in self.sheaf("import", file, "--json").splitlines()]
        own = self.source.agent == self.target
        check(f"imported: {lines}", lines[0]["state"] == ("grown" if own else "new"))
        check(f"problems: {lines}", not any("problem" in line for line in lines))
        now = self.context(lines[0]["session"], self.agent.wire)
        last = [i for i in now if i[0] == "text"][-2:]
        check(f"it ends with: {last}", PROMPT in last[0][2] and last[1][1:] == ("assistant", REPLY))
        rest = iter(now)
        for item in want:
            check(f"not back: {item}", any(matches(item, other) for other in rest))


# ---------------------------------------------------------------- all of them


def cases(options):
    there = [t for t in AGENTS if os.path.exists(os.path.join(options.agents, t, "node_modules", ".bin", AGENTS[t].command))]
    for target in options.only or AGENTS:
        if target not in there:
            print(f"skip  {target}: not in {options.agents} (tools/agents fetch {target})")
    others = {t: next(s.name for s in SOURCES if s.agent != t) for t in AGENTS}
    for source in SOURCES:
        for target in there:
            if options.only and target not in options.only:
                continue
            name = f"{source.name}-{target}"
            short = source.name in (target, others[target])
            if (short or not options.short) and (not options.names or any(n in name for n in options.names)):
                yield name, source, target


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sheaf", required=True)
    parser.add_argument("--agents", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="*", choices=AGENTS)
    parser.add_argument("--keep", action="store_true", help="leave the directories of cases that fail")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.sheaf = os.path.abspath(options.sheaf)
    options.agents = os.path.abspath(options.agents)
    failed = count = 0
    for name, source, target in cases(options):
        root = tempfile.mkdtemp(prefix="sheaf-agents-")
        began = time.monotonic()
        case = Case(options, source, target, root)
        count += 1
        try:
            case.play()
            problem = None
        except Failed as error:
            problem = str(error)
        except Exception:  # what goes wrong in one case says nothing of the others
            problem = traceback.format_exc()
        case.server.close()
        print(f"{'ok   ' if problem is None else 'FAIL '} {time.monotonic() - began:5.1f} s  {name}", flush=True)
        if problem is not None:
            failed += 1
            print("      " + problem.strip().replace("\n", "\n      ") + (f"\n      {root}" if options.keep else ""))
        if problem is None or not options.keep:
            shutil.rmtree(root, ignore_errors=True)
    print(f"{count - failed} of {count} went on")
    if count == 0:
        return 77
    return 1 if failed else 0


sys.exit(main())
