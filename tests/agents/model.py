"""A model's server for agents that are not ours: it answers in each of the four formats, says one
scripted sentence to whoever asks, and keeps every request. And what a request says, told alike for
all four: texts, calls and results in their order."""
import http.server
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
import server as scripted  # noqa: E402


def format_of(path):
    path = path.split("?")[0]
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/chat/completions"):
        return "openai-chat"
    if path.endswith("/responses"):
        return "openai-responses"
    if path.endswith(("generateContent", "GenerateContent")):
        return "gemini"
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    whole = scripted.Handler.whole
    events = scripted.Handler.events

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.others.append("GET " + self.path)
        self.whole(404, {"error": {"message": "not here"}})

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fmt = format_of(self.path)
        if self.path.split("?")[0].endswith((":countTokens", "/count_tokens")):
            return self.whole(200, {"totalTokens": 100, "input_tokens": 100})
        if fmt is None:
            self.server.others.append("POST " + self.path)
            return self.whole(404, {"error": {"message": "not here"}})
        asked = json.loads(body)
        self.server.requests.append((fmt, asked))
        whole, events = scripted.MAKERS[fmt](self.server.reply, [], None, 100)
        if asked.get("stream") or "alt=sse" in self.path:
            return self.events(events)
        return self.whole(200, whole)


class Model(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply
        self.requests, self.others = [], []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.shutdown()
        self.server_close()


# ---------------------------------------------------------------- what a request says
# ("text", role, text), ("call", id, name, input), ("result", id, text)


def flat(content):
    """The text of a result, whatever form it has."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        for key in ("output", "error", "text", "content"):
            if key in content:
                return flat(content[key])
        return json.dumps(content, sort_keys=True)
    return "\n".join(flat(part) for part in content if "text" in part)


def anthropic(body):
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content:
            if block["type"] == "text":
                yield "text", message["role"], block["text"]
            elif block["type"] == "tool_use":
                yield "call", block["id"], block["name"], block["input"]
            elif block["type"] == "tool_result":
                yield "result", block["tool_use_id"], flat(block.get("content"))


def chat(body):
    for message in body["messages"]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], flat(message["content"])
            continue
        content = message.get("content") or []
        for part in [{"text": content}] if isinstance(content, str) else content:
            if "text" in part:
                yield "text", message["role"], part["text"]
        for call in message.get("tool_calls", []):
            yield "call", call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])


def responses(body):
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            content = item["content"]
            for part in [{"text": content}] if isinstance(content, str) else content:
                if "text" in part:
                    yield "text", item["role"], part["text"]
        elif kind in ("function_call", "custom_tool_call"):
            given = item.get("arguments", item.get("input"))
            try:
                given = json.loads(given)
            except ValueError:
                pass
            yield "call", item["call_id"], item["name"], given
        elif kind.endswith("_call_output"):
            yield "result", item["call_id"], flat(item["output"])


def gemini(body):
    for content in body["contents"]:
        role = "assistant" if content.get("role") == "model" else "user"
        for part in content["parts"]:
            if part.get("thought"):
                continue
            if part.get("text"):
                yield "text", role, part["text"]
            elif "functionCall" in part:
                call = part["functionCall"]
                yield "call", call.get("id"), call["name"], call.get("args", {})
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                yield "result", answer.get("id"), flat(answer["response"])


SAYS = {"anthropic": anthropic, "openai-chat": chat, "openai-responses": responses, "gemini": gemini}


def said(fmt, body):
    return list(SAYS[fmt](body))
