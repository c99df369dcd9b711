#!/usr/bin/env python3
"""The page of `sheaf export --html` in a real browser: what it does, what it never does.

    tests/html/run.py SHEAF [NAME]...
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from browser import Browser, chromium  # noqa: E402

SHEAF = ""
FIXTURES = os.path.join(HERE, "..", "data", "import")
CLAUDE = "claude-code.11111111-1111-4111-8111-111111111111"
PI = "pi.01a1dc4f-c788-72a9-a893-f5a44e60eaa8"

# Every kind of element a page may have, and what it may say. Anything else came out of a transcript.
CHECK = """((document) => {
    const tags = new Set(("HTML HEAD META LINK TITLE STYLE SCRIPT BODY A HEADER NAV MAIN SECTION ARTICLE DIV SPAN " +
        "BUTTON SEARCH LABEL INPUT OUTPUT H1 H2 H3 H4 H5 H6 P UL OL LI DL DT DD DETAILS SUMMARY PRE CODE EM STRONG " +
        "DEL BR HR BLOCKQUOTE TABLE THEAD TBODY TR TH TD FIGURE FIGCAPTION IMG TIME DIALOG KBD B svg g rect title a").split(" "));
    const wrong = [];
    const count = (selector) => document.querySelectorAll(selector).length;
    for (const e of document.querySelectorAll("*")) {
        if (!tags.has(e.tagName))
            wrong.push("tag " + e.outerHTML.slice(0, 200));
        for (const a of e.attributes)
            if (/^on/i.test(a.name) || ["style", "srcset", "action", "formaction", "ping", "srcdoc", "background"].includes(a.name))
                wrong.push("attribute " + e.outerHTML.slice(0, 200));
        if (e.namespaceURI.endsWith("svg") && !e.closest(".chart"))
            wrong.push("svg " + e.outerHTML.slice(0, 200));
    }
    for (const a of document.querySelectorAll("a")) {
        const href = a.getAttribute("href");
        const outside = a.getAttribute("target") === "_blank";
        if (outside ? !/^(https?:\\/\\/|mailto:)/i.test(href) || a.rel !== "noopener noreferrer"
                    : !/^#(e[0-9]+|top|main)$/.test(a.getAttribute("href")))
            wrong.push("link " + a.outerHTML.slice(0, 200));
    }
    for (const i of document.querySelectorAll("img"))
        if (!/^data:image\\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+\\/]+=*$/.test(i.getAttribute("src")))
            wrong.push("picture " + i.outerHTML.slice(0, 200));
    if (count("script") !== 1 || count("style") !== 1 || count("meta") !== 6 || count("link") !== 1)
        wrong.push("more than one script, style or link, or more meta than there should be");
    if (new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size !== count("[id]"))
        wrong.push("an id twice");
    return wrong;
})"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.place.cleanup()

    def setUp(self):
        self.browser.forget()

    @classmethod
    def sheaf(cls, *words, text="", store="store"):
        run = subprocess.run(
            [SHEAF, "--store", f"jsonl:{cls.place.name}/{store}", *words],
            input=text.encode(), capture_output=True, env=dict(os.environ, LC_ALL="C.UTF-8"))
        if run.returncode != 0:
            raise AssertionError(f"sheaf {words}: {run.stderr.decode()}")
        return run.stdout.decode()

    @classmethod
    def export(cls, session, *words, name="page", **more):
        file = os.path.join(cls.place.name, name + ".html")
        cls.sheaf("export", "--html", "-o", file, *words, "--", session, **more)
        return "file://" + file

    def harmless(self, page):
        self.browser.listen(0.05)
        self.assertEqual(page.troubles, [])
        self.assertEqual(page.run(CHECK + "(document)"), [])

    def shown(self, page):
        """The numbers of the entries that are shown."""
        return page.run("[...document.querySelectorAll('#main [data-e]')].filter(e => !e.hidden)"
                        ".map(e => Number(e.dataset.e))")


class Test_page(Case):
    """What a reader does with a conversation."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sheaf("import", FIXTURES)
        cls.claude = cls.export(CLAUDE, name="claude")
        cls.pi = cls.export(PI, name="pi")

    def test_opens_without_a_word(self):
        sizes, agents = {}, {}
        for line in self.sheaf("ls", "--json", "-n", "1000").splitlines():
            session = json.loads(line).get("session")
            if session:
                url = self.export(session, name=session)
                sizes[session] = os.path.getsize(url[7:])
                agents[session.split(".")[0]] = url
        self.assertEqual(max(sizes, key=sizes.get), CLAUDE)  # the one the other tests look at
        self.assertGreaterEqual(len(agents), 8)
        for url in agents.values():
            self.harmless(self.browser.open(url))

    def test_asks_for_nothing(self):
        with open(self.claude[7:], encoding="utf-8") as file:
            text = file.read()
        policy = text.split('Content-Security-Policy" content="')[1].split('"')[0]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for word in ("http://", "https://", "//cdn", "@import", "src=\"//"):
            self.assertNotIn(word, text.split("<body")[0])

    def test_search(self):
        page = self.browser.open(self.claude)
        page.press("/")
        page.type("EXIT CODE 3")
        page.wait("document.getElementById('found').textContent === '1'")
        page.press("Enter")
        self.assertEqual(page.run("document.getElementById('found').textContent"), "1 / 1")
        self.assertTrue(page.run("CSS.highlights.get('found-now').size === 1"))
        self.assertTrue(page.run("""(() => { const r = [...CSS.highlights.get('found-now')][0];
            const b = r.getBoundingClientRect(); return b.height > 0 && b.top > 0 && b.bottom < innerHeight; })()"""))
        page.press("Escape")
        self.assertEqual(page.run("CSS.highlights.get('found').size"), 0)
        page.press("/")
        page.type("no such words")
        page.wait("document.getElementById('found').textContent === 'none'")
        self.harmless(page)

    def test_search_opens_a_fold(self):
        page = self.browser.open(self.claude)
        self.assertFalse(page.run("document.querySelector('.think').open"))
        page.press("/")
        page.type("stub thinking: tool")
        page.wait("document.getElementById('found').textContent !== ''")
        page.press("Enter")
        self.assertTrue(page.run("[...CSS.highlights.get('found-now')][0].startContainer.parentElement"
                                 ".closest('details.think .md').parentElement.open"))

    def test_search_in_another_branch(self):
        page = self.browser.open(self.pi)
        before = self.shown(page)
        page.press("/")
        page.type("After compaction")
        page.wait("Number(document.getElementById('found').textContent) > 0")
        page.press("Enter")
        self.assertNotEqual(self.shown(page), before)
        self.assertIn(22, self.shown(page))

    def test_fold_is_remembered(self):
        page = self.browser.open(self.claude)
        page.click("#path details.think > summary")
        page.click("#path details.tool > summary")
        page.wait("document.querySelector('#path .think').open && !document.querySelector('#path .tool').open")
        page.reload()
        self.assertTrue(page.run("document.querySelector('#path .think').open"))
        self.assertFalse(page.run("document.querySelector('#path .tool').open"))
        self.assertEqual(page.run("document.querySelectorAll('.think[open]').length"), 1)
        page.click("#open-all")
        page.wait("[...document.querySelectorAll('#path details')].every(d => d.open)")
        page.click("#close-all")
        page.wait("[...document.querySelectorAll('#path details')].every(d => !d.open)")
        page.reload()
        self.assertTrue(page.run("[...document.querySelectorAll('#path details')].every(d => !d.open)"))
        other = self.browser.open(self.pi)
        self.assertTrue(other.run("document.querySelector('#path .tool, #others .tool').open"))
        self.harmless(page)

    def test_nothing_remembered_nothing_lost(self):
        page = self.browser.open("about:blank")
        page.call("Page.addScriptToEvaluateOnNewDocument", source="""Object.defineProperty(window, "localStorage",
            {get() { throw new DOMException("no", "SecurityError"); }});""")
        page.go(self.claude)
        page.click("#path details.think > summary")
        page.wait("document.querySelector('#path .think').open")
        page.click("#theme")
        self.assertEqual(page.run("document.documentElement.dataset.theme"), "dark")
        self.harmless(page)

    def test_deep_link(self):
        page = self.browser.open(self.claude + "#e61")
        # It goes there and stays, whatever sizes come out on the way.
        page.wait("Math.abs(document.getElementById('e61').getBoundingClientRect().top - 68) < 12")
        self.browser.listen(0.5)
        self.assertLess(abs(page.run("document.getElementById('e61').getBoundingClientRect().top") - 68), 12)
        self.assertEqual(page.run("document.querySelector('.tree .here a').hash"), "#e61")
        self.assertEqual(page.run("document.activeElement.id"), "e61")
        # The answer of a tool is shown in its call and has a link of its own.
        answer = page.run("document.querySelector('.out[data-e]').id")
        page.run(f"document.querySelector('.out[data-e]').closest('details').open = false; location.hash = '{answer}'")
        page.wait(f"document.getElementById('{answer}').closest('details').open")
        # An entry's own id, and a beginning of it.
        whole = page.run("document.getElementById('e61').dataset.id")
        for name in (whole, whole[:8]):
            page = self.browser.open(self.claude + "#" + name)
            self.assertEqual(page.run("document.querySelector('.tree .here a').hash"), "#e61")
        self.harmless(page)

    def test_deep_link_into_another_branch(self):
        page = self.browser.open(self.pi + "#e9")
        self.assertIn(9, self.shown(page))
        self.assertEqual(self.shown(page)[-1], 23)
        self.assertNotIn(31, self.shown(page))

    def test_tree_switches_the_path(self):
        page = self.browser.open(self.pi)
        self.assertEqual(self.shown(page), [2, 3, 4, 5, 27, 28, 29, 31])
        page.click(".tree a[href='#e10']")
        page.wait("document.getElementById('e10').hidden === false")
        self.assertEqual([at for at in self.shown(page) if at > 5], list(range(6, 12)) + list(range(13, 24)))
        self.assertEqual(page.run("document.querySelectorAll('.tree .path').length"), len(self.shown(page)))
        page.click(".ways a[href='#e26']")
        page.wait("document.getElementById('e26').hidden === false")
        self.assertEqual(self.shown(page), [2, 3, 4, 5, 26])
        page.click(".tree a[href='#e31']")
        page.wait("document.getElementById('e31').hidden === false")
        self.assertEqual(self.shown(page), [2, 3, 4, 5, 27, 28, 29, 31])
        self.assertEqual(page.run("getComputedStyle(document.querySelector('.tree .minor')).display"), "none")
        page.click("#all-nodes")
        self.assertEqual(page.run("getComputedStyle(document.querySelector('.tree .minor')).display"), "flex")
        self.harmless(page)

    def test_branches_and_leaf(self):
        self.sheaf("new", "tree")
        for name, words in (("one", []), ("two", []), ("three", []), ("side", ["-b", "aside", "-p", "one"])):
            self.sheaf("append", "tree", "-i", name, *words, name)
        page = self.browser.open(self.export("tree", name="tree"))
        self.assertEqual(self.shown(page), page.run("[...document.querySelectorAll('#path article')].map(e => Number(e.dataset.e))"))
        page.click(".branches a:last-child[data-leaf]:not([aria-current])")
        page.wait("document.querySelector('#others article').hidden === false")
        self.assertEqual(len(self.shown(page)), 2)
        page = self.browser.open(self.export("tree", "--branch", "aside", name="aside"))
        self.assertEqual(len(self.shown(page)), 2)
        page = self.browser.open(self.export("tree", "--leaf", "two", name="leaf"))
        self.assertEqual(len(self.shown(page)), 2)
        self.harmless(page)

    def test_light_and_dark(self):
        color = "getComputedStyle(document.body).backgroundColor"
        page = self.browser.open(self.claude)
        light = page.run(color)
        page.click("#theme")
        dark = page.run(color)
        self.assertNotEqual(light, dark)
        page.reload()
        self.assertEqual(page.run(color), dark)
        page.click("#theme")
        page.run("localStorage.removeItem('sheaf:theme')")
        self.assertEqual(page.run(color), light)
        self.assertEqual(self.browser.open(self.claude, dark=True).run(color), dark)
        self.harmless(page)

    def test_contrast(self):
        """Text stands out from what it stands on, as WCAG 2 AA asks for."""
        measure = """(() => {
            const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
            const light = (c) => { const [r, g, b] = rgb(c).slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const below = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
                if (c.startsWith("rgb") && (rgb(c)[3] ?? 1) === 1) return c; } };
            const bad = new Set();
            for (const e of document.querySelectorAll("main *, nav *")) {
                if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility({opacityProperty: true}) || e.closest("svg"))
                    continue;
                const a = light(getComputedStyle(e).color), b = light(below(e));
                const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                if (ratio < 4.5)
                    bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
            }
            return [...bad];
        })()"""
        for dark in (False, True):
            page = self.browser.open(self.claude, dark=dark)
            self.assertEqual(page.run(measure), [])

    def test_narrow(self):
        for width in (320, 390):
            for url in (self.claude, self.pi):
                page = self.browser.open(url, width=width, height=800)
                page.click("#theme")
                page.run("for (const d of document.querySelectorAll('details')) d.open = true")
                self.assertEqual(page.run("document.documentElement.scrollWidth"), width)
        page.click("#show-tree")
        page.wait("document.getElementById('tree').getBoundingClientRect().height > 500")
        page.click(".tree a[href='#e10']")
        page.wait("!document.getElementById('tree').classList.contains('shown')")
        self.assertIn(10, self.shown(page))
        self.harmless(page)

    def test_keys(self):
        page = self.browser.open(self.claude)
        page.press("n")
        page.press("n")
        self.assertEqual(page.run("document.activeElement.id"), "e12")
        page.press("p")
        self.assertEqual(page.run("document.activeElement.id"), "e3")
        page.press("j")
        page.press("j")
        self.assertEqual(page.run("document.activeElement.id"), "e5")
        page.press("k")
        self.assertEqual(page.run("document.activeElement.id"), "e4")
        page.press("o")
        page.wait("document.querySelector('#e4 details').open")
        page.press("?")
        self.assertTrue(page.run("document.getElementById('help').open"))
        page.press("Escape")
        page.wait("!document.getElementById('help').open")
        page.press("t")
        self.assertEqual(page.run("document.activeElement.closest('#tree') !== null"), True)
        self.harmless(page)

    def test_names_for_everybody(self):
        """What a screen reader needs: one of each landmark, a name for everything that can be used."""
        page = self.browser.open(self.claude)
        self.assertEqual(page.run("['main', 'header.top', 'h1'].map(s => document.querySelectorAll(s).length)"), [1, 1, 1])
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        for node in nodes:
            role = node.get("role", {}).get("value")
            if role in ("button", "link", "searchbox", "checkbox", "image", "navigation") and not node.get("ignored"):
                self.assertTrue(node.get("name", {}).get("value"), f"{role} without a name: {node}")

    def test_without_scripts(self):
        page = self.browser.open(self.pi, scripts=False)
        page.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertEqual(page.run("getComputedStyle(document.querySelector('.tools')).display"), "none")
        self.assertEqual(len(self.shown(page)), page.run("document.querySelectorAll('.tree li').length"))
        self.assertIn("On the new branch", page.run("document.querySelector('#path article:last-child').textContent"))
        self.assertEqual(page.run("document.querySelector('.others').checkVisibility()"), True)
        self.assertEqual(page.troubles, [])

    def test_what_is_shown(self):
        page = self.browser.open(self.claude)
        text = page.run("document.getElementById('main').textContent")
        for words in ("Sub-agents", "$ echo hello-1", "failed", "+made by stub", "claude-opus-4-5",
                      "Compaction", "summary of 6,004 tokens in 711", "agent-a09d105b4b643baac", "Cache hit rate"):
            self.assertIn(words, text)
        self.assertEqual(page.run("document.querySelectorAll('figure img').length"), 1)
        self.assertEqual(page.run("document.querySelectorAll('pre .a').length"), 1)
        self.assertEqual(page.run("document.querySelectorAll('svg.tokens a').length"), 15)
        # Each answer stands in its call, in the order of the calls.
        self.assertEqual(page.run("[...document.querySelectorAll('.tool')].slice(1, 3).map(t => t.querySelector('.out pre').textContent.trim())"),
                         ["hello-1", "hello-2"])
        page.run("document.querySelector('figure img').scrollIntoView()")
        page.wait("document.querySelector('figure img').naturalWidth === 8")

    def test_edits(self):
        calls = [
            ("Edit", {"file_path": "a.c", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree\nfour"}),
            ("edit", {"path": "a.c", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "p", "newText": "q"}]}),
            ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.c\n@@\n-old\n+new\n*** End Patch"}),
            ("shell", {"command": ["apply_patch", "*** Begin Patch\n-gone\n*** End Patch"]}),
            ("shell", {"command": ["bash", "-lc", "make test"]}),
            ("TodoWrite", {"todos": [{"content": "first", "status": "completed"}, {"content": "then", "status": "pending"}]}),
        ]
        parts = [{"type": "tool_use", "tool_use": {"id": f"c{i}", "name": name, "input": input}}
                 for i, (name, input) in enumerate(calls)]
        text = "Look:\n\n```diff\n-was\n+is\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n\n**bold** `code` <https://a.invalid/>"
        colours = {"type": "tool_result", "tool_result": {"tool_use_id": "c4", "content": "\x1b[1;31mred\x1b[0m plain \x1b[2Kcleared \x1b bell\x07"}}
        self.sheaf("new", "edits")
        self.sheaf("append", "edits", "--batch", text="\n".join(json.dumps({"type": "message", "message": m}) for m in (
            {"role": "assistant", "content": [{"type": "text", "text": {"content": text}}, *parts]},
            {"role": "tool", "content": [colours]})) + "\n")
        page = self.browser.open(self.export("edits", name="edits"))
        lines = page.run("[...document.querySelectorAll('.tool')].map(t => [...t.querySelectorAll('pre span')].map(s => s.className + s.textContent.trimEnd()))")
        self.assertEqual(lines[0], ["s one", "d-two", "a+2", "s three", "a+four"])
        self.assertEqual(lines[1], ["d-x", "a+y", "d-p", "a+q"])
        self.assertEqual(lines[2], ["h*** Begin Patch", "h*** Update File: a.c", "k@@", "d-old", "a+new", "h*** End Patch"])
        self.assertEqual(lines[3], ["h*** Begin Patch", "d-gone", "h*** End Patch"])
        self.assertEqual(lines[4][0], "prompt$")
        self.assertIn("c1 cb red", lines[4])
        self.assertEqual(page.run("document.querySelectorAll('.tool')[4].querySelector('.out pre').textContent"),
                         "red plain cleared \u241b bell\u2407")
        self.assertEqual(page.run("[...document.querySelectorAll('.todos li')].map(l => l.textContent)"), ["☑ first", "☐ then"])
        self.assertEqual(page.run("[...document.querySelectorAll('.md pre span')].map(s => s.className)"), ["d", "a"])
        self.assertEqual(page.run("document.querySelector('.md td.r').textContent"), "2")
        self.assertEqual(page.run("document.querySelector('.md strong').textContent"), "bold")
        self.assertEqual(page.run("[...document.querySelectorAll('.chip')].filter(c => c.textContent === 'no answer').length"), 5)
        # Copying gives the command without its prompt.
        page.run("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
        page.run("document.querySelectorAll('.tool')[4].querySelector('.copy').click()")
        self.assertEqual(page.run("copied"), "bash -lc make test")
        self.harmless(page)


def payloads():
    with open(os.path.join(HERE, "xss.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    return lines + [
        "<script\n>xss()</script\n>",
        "<img src=x\tonerror=xss()>",
        "[x](java\nscript:xss())",
        "[x](\x01javascript:xss())",
        "x\r\n<script>xss()</script>",
        "\u202e<script>xss()</script>",
        "\u2028<script>xss()</script>",
        "\ufeff<img src=x onerror=xss()>",
        "\x1b]8;;javascript:xss()\x07x\x1b]8;;\x07",
        "\x1b[31m<script>xss()</script>",
        "```" + "\"><img src=x onerror=xss()>\n<script>xss()</script>\n```",
        "<" * 300 + "script>xss()",
        "[" * 60 + "x](javascript:xss())",
        "> " * 90 + "<img src=x onerror=xss()>",
    ]


CANARY = """window.caught = [];
window.xss = () => window.caught.push(new Error().stack);
addEventListener("securitypolicyviolation", (e) => window.caught.push("policy " + e.violatedDirective));"""


def plain(text, size):
    """As much of a text as a name may hold."""
    return "".join(c for c in text if c.isprintable()).encode()[:size].decode(errors="ignore")


def part(kind, **members):
    return {"type": kind, kind: members}


class Test_xss(Case):
    """Nothing in a transcript runs, loads or leads anywhere, and all of it can be read."""

    def records(self, i, p):
        """A payload in every field that a record can have."""
        name = lambda what: f"{what}{i}"  # noqa: E731

        def message(role, *parts, **more):
            return {"type": "message", "message": {"role": role, "content": list(parts), **more}}

        text = lambda t: part("text", content=t)  # noqa: E731
        use = lambda k, input, **more: part("tool_use", id=name(k), name=more.get("name", "t"), input=input)  # noqa: E731
        yield {**message("user", text(p)), "id": plain(f"{i}{p}", 120)}
        yield message("user", text(f"[{p}]({p}) ![{p}]({p}) [{p}]: {p}\n\n[r]: {p}\n\n[{p}][r] <{p}> **{p}** `{p}`"))
        yield message("assistant", text(f"```{p}\n{p}\n```\n\n~~~ {p}\n{p}\n~~~\n\n# {p}\n\n| {p} | b |\n|---|---|\n| {p} | {p} |\n\n- [x] {p}\n\n> {p}"),
                      part("thinking", text=p), model=p, provider=p, stop_reason=p, response_id=p,
                      usage={"input": 1, "output": 1})
        yield message("assistant", use("a", {p: p, "z": [p, {p: p}]}, name=p), use("b", {"command": p}),
                      use("c", {"file_path": p, "old_string": p, "new_string": p + "\n" + p}),
                      use("d", {"file_path": p, "content": p}), use("e", {"todos": [{"content": p, "status": p}]}),
                      use("f", {"patch": "*** Begin Patch\n" + p + "\n+" + p}), use("g", {"command": ["bash", p]}),
                      part("tool_use", id=p, name="t", input_text=p))
        yield message("tool", part("tool_result", tool_use_id=name("a"), tool_name=p, content=p, is_error=True),
                      part("tool_result", tool_use_id=name("b"), content=[
                          text(p), part("image", source={"type": "base64", "media_type": p, "data": "QUJD"}),
                          part("image", source={"type": "base64", "media_type": "image/png", "data": p}),
                          part("image", source={"type": "url", "media_type": "image/png", "data": p}),
                          part("image", source={"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zy8+"}),
                          part("document", source={"type": p, "media_type": p, "data": p})]))
        yield message("tool", part("tool_result", tool_use_id=p, tool_name=p, content="diff --git a b\n" + p))
        yield message("system", text(p), part("opaque", provider=p, raw={p: p}))
        yield message("bashExecution", command=p, output=p, exitCode=1)
        yield {"type": "model_change", "model_change": {"provider": p, "model_id": p}}
        yield {"type": "thinking_level", "thinking_level": {"thinking_level": p}}
        yield {"type": "custom", "custom": {"custom_type": p, "data": {p: p}}, "agent": plain(p, 100), "author": p, "metadata": {p: p}}
        yield {"type": "custom", "custom": {"custom_type": p, "in_context": True, "content": p}}
        yield {"type": "branch_summary", "branch_summary": {"summary": p, "from_id": name("l")}}
        yield {**message("user", text(p)), "id": name("l"), "turn": plain(f"{i}{p}", 100)}
        yield {"type": "label", "label": {"target_id": name("l"), "label": plain(f"{i}{p}", 100)}}
        yield {"type": "leaf", "leaf": {"branch": plain(f"{i}{p}", 64), "entry_id": name("l")}}
        yield {"type": "compaction", "compaction": {"summary": p, "first_kept_entry_id": name("l"), "tokens_before": 1, "trigger": p}}

    def open(self, url):
        page = self.browser.open("about:blank")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=CANARY)
        page.go(url)
        return page

    def provoke(self, page):
        """Everything that might set off a handler: folds, focus, the mouse, keys, the search."""
        page.run("""(() => {
            document.getElementById("open-all").click();
            document.getElementById("all-nodes").click();
            for (const e of document.querySelectorAll("#main *, #tree *"))
                for (const type of ["mouseover", "mouseenter", "pointerdown", "focus", "animationstart", "toggle", "error", "load"])
                    e.dispatchEvent(new Event(type, {bubbles: false}));
            const find = document.getElementById("find");
            find.value = "<script>xss()";
            find.dispatchEvent(new Event("input"));
            find.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
        })()""")
        self.browser.listen(0.2)
        self.assertEqual(page.run("caught"), [])
        self.harmless(page)

    def test_every_field_of_a_record(self):
        corpus = payloads()
        self.assertGreaterEqual(len(corpus), 100)
        self.sheaf("new", "xss")
        records = [r for i, p in enumerate(corpus) for r in self.records(i, p)]
        # A branch is set where its entry is stored already: the record before its label.
        leaves = [r for r in records if r["type"] == "leaf"]
        records = [r for r in records if r["type"] != "leaf"]
        for at, r in enumerate(records):
            if r["type"] == "label":
                leaves[0]["leaf"]["entry_seq"] = at
                leaves.append(leaves.pop(0))
        for batch in (records[:2000], records[2000:], leaves):
            self.sheaf("append", "xss", "--batch", text="".join(json.dumps(r) + "\n" for r in batch))
        page = self.open(self.export("xss"))
        self.provoke(page)
        # All of it can be read: controls as their pictures, invisible characters by their numbers.
        text = page.run("document.getElementById('main').textContent")
        for p in corpus:
            readable = "".join(chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\n\t" else
                               f"U+{ord(c):04X}" if c in "\u202e\u2028\ufeff" else c
                               for c in p.replace("\r\n", "\n"))
            self.assertIn(readable, text)
        page.close()

    def test_every_field_of_a_session(self):
        corpus = payloads()
        for i, p in enumerate(corpus):
            short = plain(p, 50)
            key = ["--app", short, "--user", short]
            # A page is called by the session's name, or by what was said first.
            if i % 2:
                self.sheaf("new", *key, "--name", p[:500], "--cwd", "/" + short, "--", f"{i}{short}")
            else:
                self.sheaf("append", "--create", *key, "--", f"{i}{short}", p)
            self.export(f"{i}{short}", *key, name=f"session{i}")
        page = self.open("about:blank")
        for i in range(len(corpus)):
            with open(f"{self.place.name}/session{i}.html", encoding="utf-8") as file:
                text = json.dumps(file.read())
            self.assertEqual(page.run(f"{CHECK}(new DOMParser().parseFromString({text}, 'text/html'))"), [])
        for i in range(0, len(corpus), 16):
            page.go(f"file://{self.place.name}/session{i}.html")
            self.provoke(page)

    def test_a_file_that_is_not_ours(self):
        """No rule of a store holds there: roles, types, times and ids are anything."""
        os.makedirs(os.path.join(self.place.name, "foreign"), exist_ok=True)
        with open(os.path.join(self.place.name, "foreign", "foreign.jsonl"), "w") as file:
            parent = None
            file.write(json.dumps({"type": "session", "version": 3, "id": payloads()[0], "timestamp": payloads()[0], "cwd": payloads()[0]}) + "\n")
            for i, p in enumerate(payloads()):
                for kind in ("message", p, "custom"):
                    record = {"type": kind, "id": f"{i}{kind}"[:100], "parentId": parent, "parent_id": parent, "timestamp": p,
                              "branch": p[:50], kind: {"role": p, "content": p, "summary": p, "data": p}, "message": {"role": p, "content": p, "model": p}}
                    file.write(json.dumps(record) + "\n")
                    parent = record["id"]
            for parts in ([{"type": kind, kind: {}}] for kind in ("text", "thinking", "image", "document", "tool_use", "tool_result", "opaque")):
                file.write(json.dumps({"type": "message", "id": str(parts), "parentId": None, "message": {"role": "assistant", "content": parts}}) + "\n")
        page = self.open(self.export("foreign", store="foreign", name="foreign"))
        self.provoke(page)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    SHEAF = os.path.abspath(sys.argv.pop(1))
    if not chromium():
        print("no chromium: run tools/bootstrap")
        sys.exit(77)
    unittest.main()
