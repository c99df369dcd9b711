"""A model's server that does what a script says: whole replies or events in each of the four
formats, statuses, connections that are cut, silence. It keeps every request it gets."""
import http.server
import json
import sys
import threading
import time

FORMATS = ["anthropic", "openai-chat", "openai-responses", "gemini"]
PATHS = {
    "anthropic": ["/v1/messages"],
    "openai-chat": ["/v1/chat/completions"],
    "openai-responses": ["/v1/responses"],
    "gemini": [
        "/v1beta/models/test-model:streamGenerateContent?alt=sse",
        "/v1beta/models/test-model:generateContent",
    ],
}
KEYS = {
    "anthropic": ("x-api-key", "secret"),
    "openai-chat": ("authorization", "Bearer secret"),
    "openai-responses": ("authorization", "Bearer secret"),
    "gemini": ("x-goog-api-key", "secret"),
}


# ---------------------------------------------------------------- replies


def event(name, data):
    data = dict({"type": name}, **data) if name else data
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"


def anthropic_parts(text, calls):
    parts = [{"type": "text", "text": text}] if text else []
    return parts + [{"type": "tool_use", "id": i, "name": n, "input": v} for i, n, v in calls]


def anthropic(text, calls, stop, tokens):
    stop = stop or ("tool_use" if calls else "end_turn")
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "test-model"}
    usage = {"input_tokens": tokens, "output_tokens": 7}
    parts = anthropic_parts(text, calls)
    whole = dict(message, content=parts, stop_reason=stop, usage=usage)
    start = dict(message, content=[], stop_reason=None, usage={"input_tokens": tokens, "output_tokens": 1})
    events = [event("message_start", {"message": start}), event("ping", {})]
    for index, part in enumerate(parts):
        if part["type"] == "text":
            empty, pieces = dict(part, text=""), [{"type": "text_delta", "text": t} for t in halves(text)]
        else:
            empty = dict(part, input={})
            given = json.dumps(part["input"])
            pieces = [{"type": "input_json_delta", "partial_json": t} for t in halves(given)]
        events.append(event("content_block_start", {"index": index, "content_block": empty}))
        events += [event("content_block_delta", {"index": index, "delta": p}) for p in pieces]
        events.append(event("content_block_stop", {"index": index}))
    events.append(event("message_delta", {"delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}))
    events.append(event("message_stop", {}))
    return whole, events


def chat(text, calls, stop, tokens):
    stop = stop or ("tool_calls" if calls else "stop")
    head = {"id": "chatcmpl-1", "created": 1, "model": "test-model"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7}
    tool_calls = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(v)}}
        for i, n, v in calls
    ]
    message = {"role": "assistant", "content": text or None}
    if tool_calls:
        message["tool_calls"] = tool_calls
    choice = {"index": 0, "message": message, "finish_reason": stop}
    whole = dict(head, object="chat.completion", choices=[choice], usage=usage)

    def chunk(delta, finish=None):
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return event(None, dict(head, object="chat.completion.chunk", choices=choices))

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": t}) for t in halves(text)]
    for index, call in enumerate(tool_calls):
        given = call["function"]["arguments"]
        begun = dict(call, index=index, function={"name": call["function"]["name"], "arguments": ""})
        events.append(chunk({"tool_calls": [begun]}))
        for piece in halves(given):
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    events.append(chunk({}, stop))
    events.append(event(None, dict(head, object="chat.completion.chunk", choices=[], usage=usage)))
    events.append("data: [DONE]\n\n")
    return whole, events


def responses(text, calls, stop, tokens):
    items = []
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content})
    for number, (i, n, v) in enumerate(calls):
        items.append({"type": "function_call", "id": f"fc_{number}", "call_id": i, "name": n, "arguments": json.dumps(v), "status": "completed"})
    usage = {"input_tokens": tokens, "output_tokens": 7, "total_tokens": tokens + 7}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "test-model", "output": items, "usage": usage}
    if stop:
        whole.update(status="incomplete", incomplete_details={"reason": stop})
    begun = dict(whole, status="in_progress", output=[], usage=None)
    events = [event("response.created", {"response": begun})]
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        events.append(event("response.output_item.added", {"output_index": index, "item": dict(item, status="in_progress")}))
        if item["type"] == "message":
            events += [event("response.output_text.delta", dict(at, content_index=0, delta=t)) for t in halves(text)]
        else:
            events += [event("response.function_call_arguments.delta", dict(at, delta=t)) for t in halves(item["arguments"])]
            events.append(event("response.function_call_arguments.done", dict(at, arguments=item["arguments"])))
        events.append(event("response.output_item.done", {"output_index": index, "item": item}))
    events.append(event("response.incomplete" if stop else "response.completed", {"response": whole}))
    return whole, events


def gemini(text, calls, stop, tokens):
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 7, "totalTokenCount": tokens + 7}

    def candidate(parts, finish):
        given = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            given["finishReason"] = finish
        return {"candidates": [given], "usageMetadata": usage, "modelVersion": "test-model", "responseId": "r1"}

    called = [{"functionCall": {"id": i, "name": n, "args": v}} for i, n, v in calls]
    parts = ([{"text": text}] if text else []) + called
    events = [event(None, candidate([{"text": t}], None)) for t in halves(text)]
    events += [event(None, candidate([c], None)) for c in called]
    events.append(event(None, candidate([{"text": ""}], stop or "STOP")))
    return candidate(parts, stop or "STOP"), events


MAKERS = {"anthropic": anthropic, "openai-chat": chat, "openai-responses": responses, "gemini": gemini}


def halves(text):
    cut = (len(text) + 1) // 2
    return [t for t in (text[:cut], text[cut:]) if t]


ERRORS = {
    "overflow": (400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error", "INVALID_ARGUMENT"),
    "rate": (429, "slow down", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    "server": (500, "something broke", "api_error", "INTERNAL"),
    "auth": (401, "bad key secret", "authentication_error", "UNAUTHENTICATED"),
}


# ---------------------------------------------------------------- acts
# An act is what happens to one request: a function of the handler.


def says(fmt, text="", calls=(), stop=None, tokens=100):
    """A reply, as the request asks for it: whole or as events."""
    whole, events = MAKERS[fmt](text, list(calls), stop, tokens)

    def act(handler):
        if handler.asked_stream:
            handler.events(events)
        else:
            handler.whole(200, whole)

    return act


def half_of(fmt, text):
    """The events that bring the first half of a text, and the one that brings the second."""
    _, events = MAKERS[fmt](text, [], None, 100)
    rest = json.dumps(halves(text)[1])
    at = next(i for i, e in enumerate(events) if rest in e)
    return events[:at], events[at]


def breaks_off(fmt, text, abrupt=True):
    """Half of a text and half of an event; then the connection is gone, or ends as if all was said."""
    first, event_after = half_of(fmt, text)
    pieces = first + [event_after[: len(event_after) // 2]]
    return lambda handler: handler.events(pieces, end=not abrupt)


def stalls(fmt, text, seconds):
    first, _ = half_of(fmt, text)

    def act(handler):
        handler.events(first, end=False)
        handler.server.stopped.wait(seconds)

    return act


def stays_open(fmt, text, seconds):
    """All is said, but the stream does not end."""
    _, events = MAKERS[fmt](text, [], None, 100)

    def act(handler):
        handler.events(events, end=False)
        handler.server.stopped.wait(seconds)

    return act


def redirects(status, where):
    return lambda handler: handler.whole(status, {}, [("Location", where)])


def silent(seconds):
    return lambda handler: handler.server.stopped.wait(seconds)


def fails(fmt, what, headers=()):
    status, text, kind, state = ERRORS[what]
    if fmt == "anthropic":
        body = {"type": "error", "error": {"type": kind, "message": text}}
    elif fmt == "gemini":
        body = {"error": {"code": status, "message": text, "status": state}}
    else:
        code = "context_length_exceeded" if what == "overflow" else None
        body = {"error": {"message": text, "type": kind, "code": code}}
    return lambda handler: handler.whole(status, body, headers)


def refuses_in_pieces(texts):
    """A refusal whose body comes cut at these places."""

    def act(handler):
        handler.send_response(401)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len("".join(texts))))
        handler.end_headers()
        for text in texts:
            handler.wfile.write(text.encode())
            handler.wfile.flush()
            time.sleep(0.2)

    return act


def hints(then, seconds):
    """Says early that an answer will come, and then for a while nothing."""

    def act(handler):
        handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        handler.wfile.flush()
        handler.server.stopped.wait(seconds)
        then(handler)

    return act


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        server = self.server
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True  # who sent it was killed
            return None
        with server.lock:
            server.requests.append(body)
            server.times.append(time.monotonic())
            act = server.acts.pop(0) if server.acts else None
        name, value = KEYS[server.format]
        server.headers.append(dict((k.lower(), v) for k, v in self.headers.items()))
        if self.path not in PATHS[server.format]:
            server.problems.append(f"asked for {self.path}")
        if self.headers.get(name) != value or self.headers.get("content-type") != "application/json":
            server.problems.append(f"headers: {self.headers}")
        try:
            asked = json.loads(body)
            self.asked_stream = bool(asked.get("stream")) or "alt=sse" in self.path
        except ValueError as error:
            server.problems.append(f"not JSON: {error}")
        if act is None:
            server.problems.append("a request too many: " + body.decode()[-300:])
            return self.whole(400, {"error": {"message": "the script is over"}})
        try:
            return act(self)
        except (BrokenPipeError, ConnectionResetError):
            return None  # it was cancelled

    def whole(self, status, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def events(self, texts, end=True):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in texts:
            piece = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if end:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fmt, acts):
        super().__init__(("127.0.0.1", 0), Handler)
        self.format = fmt
        self.suffix = ""
        self.acts = list(acts)
        self.requests, self.headers, self.times, self.problems = [], [], [], []
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # who was killed says no goodbye
            super().handle_error(request, client_address)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.stopped.set()
        self.shutdown()
        self.server_close()
