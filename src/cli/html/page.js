"use strict";
/* The page of `sheaf export --html`: paths of the tree, search, folds that are remembered, keys.
 * Without it the page can still be read. Nothing here makes HTML from text. */
(() => {
	const root = document.documentElement;
	root.classList.add("scripted");

	/* What is remembered, if the browser lets us: of this session, and of all of them. */
	const memory = {
		read(key) {
			try {
				return JSON.parse(localStorage.getItem(key));
			} catch {
				return null;
			}
		},
		write(key, value) {
			try {
				localStorage.setItem(key, JSON.stringify(value));
			} catch {
				/* private window, or no room: it lasts as long as the page */
			}
		},
	};

	const THEME = "sheaf:theme";
	const remembered = memory.read(THEME);
	if (remembered === "light" || remembered === "dark")
		root.dataset.theme = remembered;

	function toggleTheme() {
		const dark = root.dataset.theme ? root.dataset.theme === "dark"
			: matchMedia("(prefers-color-scheme: dark)").matches;
		root.dataset.theme = dark ? "light" : "dark";
		memory.write(THEME, root.dataset.theme);
	}

	addEventListener("DOMContentLoaded", () => {
		const $ = (id) => document.getElementById(id);
		const main = $("main");

		/* ---- Entries: number → its elements and its parent ---- */
		const entries = new Map();
		for (const element of main.querySelectorAll("[data-e]")) {
			const at = Number(element.dataset.e);
			const known = entries.get(at);
			if (known)
				known.elements.push(element);
			else
				entries.set(at, { elements: [element], parent: Number(element.dataset.p), last: at });
		}
		const order = [...entries.keys()].sort((a, b) => a - b);
		/* The newest entry below each: where the path through it ends. */
		for (let i = order.length - 1; i >= 0; i--) {
			const entry = entries.get(order[i]);
			const above = entries.get(entry.parent);
			if (above && entry.last > above.last)
				above.last = entry.last;
		}
		const nodes = new Map();
		for (const item of document.querySelectorAll(".tree li"))
			nodes.set(Number(item.firstElementChild.hash.slice(2)), item);

		/* ---- The path that is shown ---- */
		let path = new Set();
		function show(leaf) {
			path = new Set();
			for (let at = leaf; entries.has(at) && !path.has(at); at = entries.get(at).parent)
				path.add(at);
			for (const [at, entry] of entries)
				for (const element of entry.elements)
					element.hidden = !path.has(at);
			for (const [at, item] of nodes)
				item.classList.toggle("path", path.has(at));
			for (const link of main.querySelectorAll(".ways a"))
				mark(link, path.has(Number(link.hash.slice(2))));
			for (const link of document.querySelectorAll(".branches a"))
				mark(link, Number(link.dataset.leaf) === leaf);
		}
		function mark(link, current) {
			if (current)
				link.setAttribute("aria-current", "true");
			else
				link.removeAttribute("aria-current");
		}

		/* ---- Folds ---- */
		const key = "sheaf:fold:" + document.body.dataset.key;
		const folds = [...main.querySelectorAll("details")];
		const written = new Map(); /* element → whether the page was written with it open */
		const names = new Map();
		const counts = new Map();
		for (const fold of folds) {
			const owner = fold.closest("[data-e]");
			const at = owner ? owner.dataset.e : "about";
			const nth = counts.get(at) || 0;
			counts.set(at, nth + 1);
			names.set(fold, at + "." + nth);
			written.set(fold, fold.open);
		}
		let changed = memory.read(key);
		if (changed === null || typeof changed !== "object" || Array.isArray(changed))
			changed = {};
		for (const fold of folds) {
			const name = names.get(fold);
			if (Object.hasOwn(changed, name))
				fold.open = changed[name] === 1;
		}
		let saving = 0;
		function save() {
			clearTimeout(saving);
			saving = 0;
			memory.write(key, changed);
		}
		addEventListener("pagehide", () => saving && save());
		function note(fold) {
			const name = names.get(fold);
			if (fold.open === written.get(fold))
				delete changed[name];
			else
				changed[name] = fold.open ? 1 : 0;
			if (saving === 0)
				saving = setTimeout(save, 200);
		}
		main.addEventListener("toggle", (event) => {
			if (names.has(event.target))
				note(event.target);
		}, true);
		function openAll(open) {
			for (const fold of folds)
				if (fold.closest(".about") === null)
					fold.open = open;
		}
		function openAround(element) {
			for (let at = element; at && at !== main; at = at.parentElement)
				if (at.tagName === "DETAILS")
					at.open = true;
		}

		/* ---- Going to an entry ---- */
		let here = 0;
		function settle(at) {
			nodes.get(here)?.classList.remove("here");
			here = at;
			const item = nodes.get(at);
			if (item) {
				item.classList.add("here");
				item.scrollIntoView({ block: "nearest" });
			}
		}
		/* What comes into view gets its real size only then: it goes there again until it stays. A
		 * reader who moves meanwhile is not pulled back. */
		let going = 0;
		function bring(element, block) {
			const mine = ++going;
			const top = () => element.getBoundingClientRect().top;
			let still = 0, frames = 0;
			function again() {
				if (mine !== going || still > 8 || ++frames > 120)
					return;
				const before = top();
				element.scrollIntoView({ block });
				still = Math.abs(top() - before) < 1 ? still + 1 : 0;
				requestAnimationFrame(again);
			}
			again();
		}
		for (const type of ["wheel", "touchmove", "pointerdown", "keydown"])
			addEventListener(type, () => going++, { passive: true, capture: true });
		function go(at, leaf) {
			const entry = entries.get(at);
			if (!entry)
				return;
			if (leaf || !path.has(at))
				show(leaf || entry.last);
			const element = entry.elements[0];
			openAround(element);
			settle(at);
			(element.closest("article") || element).setAttribute("tabindex", "-1");
			bring(element, "start");
			(element.closest("article") || element).focus({ preventScroll: true });
		}
		/* #e12, or the id of an entry, or a beginning of it that no other has. */
		function resolve(hash) {
			let name = hash.slice(1);
			try {
				name = decodeURIComponent(name);
			} catch {
				/* as it is */
			}
			const number = /^e([0-9]+)$/.exec(name);
			if (number && entries.has(Number(number[1])))
				return Number(number[1]);
			if (name.length < 4)
				return 0;
			let found = 0;
			for (const article of main.querySelectorAll("article[data-id]")) {
				if (article.dataset.id === name)
					return Number(article.dataset.e);
				if (article.dataset.id.startsWith(name))
					found = found === 0 ? Number(article.dataset.e) : -1;
			}
			return Math.max(found, 0);
		}
		let exact = 0;
		document.addEventListener("click", (event) => {
			const link = event.target.closest?.("a[href^='#']");
			exact = Number(link?.dataset?.leaf) || 0;
			if (link && link.getAttribute("href") === location.hash)
				go(resolve(location.hash), exact);
			if (link?.closest("#tree"))
				showTree(false);
		});
		function follow() {
			go(resolve(location.hash), exact);
			exact = 0;
		}
		addEventListener("hashchange", follow);

		/* ---- Search ---- */
		const field = $("find");
		const found = $("found");
		let hits = [];
		let hit = -1;
		/* What is said twice, in a summary and in what it folds, is found once. */
		function textsOf(element) {
			const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
			const texts = [];
			for (let node = walker.nextNode(); node; node = walker.nextNode())
				if (!node.parentElement.closest(".copy, .meta, .ways, .away, .brief"))
					texts.push(node);
			return texts;
		}
		function rangesIn(element, wanted) {
			const ranges = [];
			for (const node of textsOf(element)) {
				const text = node.data.toLowerCase();
				for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
					if (at + wanted.length > node.data.length)
						break; /* lower case was longer */
					const range = new Range();
					range.setStart(node, at);
					range.setEnd(node, at + wanted.length);
					ranges.push(range);
				}
			}
			return ranges;
		}
		const HITS_MAX = 5000;
		function search() {
			const wanted = field.value.trim().toLowerCase();
			hits = [];
			hit = -1;
			for (const item of nodes.values())
				item.classList.remove("found");
			if (wanted !== "") {
				for (const article of main.querySelectorAll("article")) {
					if (!article.textContent.toLowerCase().includes(wanted))
						continue;
					for (const range of rangesIn(article, wanted)) {
						const owner = range.startContainer.parentElement.closest("[data-e]");
						hits.push({ range, at: Number(owner.dataset.e) });
						nodes.get(Number(owner.dataset.e))?.classList.add("found");
					}
					if (hits.length > HITS_MAX)
						break;
				}
			}
			paint();
			tell(wanted);
		}
		function paint() {
			if (!("highlights" in CSS))
				return;
			CSS.highlights.set("found", new Highlight(...hits.map((h) => h.range)));
			if (hit >= 0)
				CSS.highlights.set("found-now", new Highlight(hits[hit].range));
			else
				CSS.highlights.delete("found-now");
		}
		function tell(wanted) {
			if (wanted === "")
				found.textContent = "";
			else if (hits.length === 0)
				found.textContent = "none";
			else
				found.textContent = (hit < 0 ? "" : hit + 1 + " / ") + hits.length + (hits.length > HITS_MAX ? "+" : "");
		}
		function step(by) {
			if (hits.length === 0)
				return;
			hit = hit < 0 ? (by > 0 ? 0 : hits.length - 1) : (hit + by + hits.length) % hits.length;
			const { range, at } = hits[hit];
			if (!path.has(at))
				show(entries.get(at).last);
			openAround(range.startContainer.parentElement);
			settle(at);
			bring(range.startContainer.parentElement, "center");
			paint();
			tell(field.value);
		}
		let waiting = 0;
		field.addEventListener("input", () => {
			clearTimeout(waiting);
			waiting = setTimeout(search, 120);
		});
		field.addEventListener("keydown", (event) => {
			if (event.key === "Enter") {
				event.preventDefault();
				clearTimeout(waiting);
				if (hit < 0)
					search();
				step(event.shiftKey ? -1 : 1);
			} else if (event.key === "Escape") {
				field.value = "";
				search();
				field.blur();
			}
		});
		$("find-next").addEventListener("click", () => step(1));
		$("find-back").addEventListener("click", () => step(-1));

		/* ---- Buttons ---- */
		const tree = $("tree");
		function showTree(shown) {
			tree.classList.toggle("shown", shown);
			$("show-tree").setAttribute("aria-expanded", String(shown));
		}
		$("show-tree").addEventListener("click", () => showTree(!tree.classList.contains("shown")));
		$("open-all").addEventListener("click", () => openAll(true));
		$("close-all").addEventListener("click", () => openAll(false));
		$("theme").addEventListener("click", toggleTheme);
		$("keys").addEventListener("click", () => $("help").showModal());
		$("help-close").addEventListener("click", () => $("help").close());
		$("all-nodes").addEventListener("change", (event) =>
			tree.querySelector(".tree").classList.toggle("all", event.target.checked));
		async function copy(button) {
			const code = button.parentElement.querySelector("pre");
			const text = [...code.childNodes].filter((n) => n.className !== "prompt")
				.map((n) => n.textContent).join("");
			try {
				await navigator.clipboard.writeText(text);
			} catch {
				const range = new Range();
				range.selectNodeContents(code);
				getSelection().removeAllRanges();
				getSelection().addRange(range);
				document.execCommand("copy");
			}
			button.textContent = "Copied";
			button.classList.add("done");
			setTimeout(() => {
				button.textContent = "Copy";
				button.classList.remove("done");
			}, 1500);
		}
		main.addEventListener("click", (event) => {
			if (event.target.className === "copy")
				copy(event.target);
		});

		/* ---- Keys ---- */
		function visible(selector) {
			return [...main.querySelectorAll(selector)].filter((e) => !e.hidden);
		}
		function move(selector, by) {
			const list = visible(selector);
			const now = entries.get(here)?.elements[0].closest("article");
			const line = now ? now.offsetTop : scrollY;
			const next = by > 0 ? list.find((e) => e.offsetTop > line)
				: list.findLast((e) => e.offsetTop < line);
			if (next)
				go(Number(next.dataset.e));
		}
		const actions = {
			j: () => move("article", 1),
			k: () => move("article", -1),
			n: () => move("article.user", 1),
			p: () => move("article.user", -1),
			e: () => openAll(true),
			c: () => openAll(false),
			d: toggleTheme,
			o: () => {
				const inside = entries.get(here)?.elements[0].closest("article")?.querySelectorAll("details") || [];
				const open = [...inside].some((fold) => !fold.open);
				for (const fold of inside)
					fold.open = open;
			},
			t: () => {
				showTree(true);
				const seen = [...tree.querySelectorAll(".tree li")].filter((item) => item.checkVisibility());
				const near = seen.findLast((item) => Number(item.firstElementChild.hash.slice(2)) <= here);
				(near || seen[0])?.firstElementChild.focus();
			},
			"/": () => field.focus(),
			"?": () => $("help").showModal(),
			Escape: () => showTree(false),
		};
		addEventListener("keydown", (event) => {
			if (event.ctrlKey || event.metaKey || event.altKey || $("help").open ||
				event.target.matches?.("input, textarea"))
				return;
			if (Object.hasOwn(actions, event.key)) {
				event.preventDefault();
				actions[event.key]();
			}
		});

		/* ---- Begin ---- */
		const leaf = Number(document.body.dataset.leaf);
		show(leaf);
		if (location.hash)
			follow();
	});
})();
