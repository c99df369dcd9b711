#!/usr/bin/env python3
"""A model for the tests of `sheaf chat`: answers by what is said last.

    chat_server.py URL_FILE LOG_FILE [PORT]

Listens on a port of 127.0.0.1 (a free one without PORT) and writes its address to URL_FILE. It
streams Chat Completions and Anthropic Messages. Every request body goes to LOG_FILE, one a line.

What is said last decides: a text in REPLIES gets its reply; one that begins with `broken`, a
status 500 the first time; with `slow`, words without end until nobody listens; with `cut`, half a
reply and no end, with `cut once` the first time only; with `refused`, a status 400; with `silent`,
nothing; with `evil`, everything a terminal obeys; a request to sum up, a summary. Anything else is
said back.
"""
import http.server
import json
import os
import sys
import time

REPLIES = {
    "Make the parser faster.": "With SIMD, or with a table of 256 bytes?",
    "SIMD, please.": "Done. It is *slower* on short strings, though: most of yours are under 16 bytes.",
    "Then the table.": "Done. **Twice as fast**, and it runs on ARM too:\n\n"
    "```c\nwhile (plain[(unsigned char)*p])\n\tp++;\n```\n",
}
EVIL = (
    "\x1b[31mred\x1b]52;c;ZXZpbA==\x07 \x1b]8;;http://x\x1b\\link \x1b[2J\x1b[H "
    "\u009b31m \u009d0;title\u009c \b\b \x7f \u202e\u2066 \U000e0041 \ufeff end"
)
SUMMARY = "The parser was made faster: SIMD was slower, a table of 256 bytes is twice as fast."
failed = set()


def said_last(body):
    """The text of the last message, and whether a summary is wanted."""
    text = ""
    for message in body.get("messages", []):
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        text = content
    return text


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, data, name=None):
        head = f"event: {name}\n" if name else ""
        self.chunk(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    def start(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def openai(self, pieces, said, model):
        def piece(delta, reason=None):
            self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model,
                        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        self.start()
        piece({"role": "assistant", "content": ""})
        for text in pieces:
            piece({"content": text})
        piece({}, "stop")
        self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model, "choices": [],
                    "usage": {"prompt_tokens": 10 + len(said), "completion_tokens": 9, "total_tokens": 19}})
        self.event("[DONE]")

    def anthropic(self, pieces, said, model):
        self.start()
        usage = {"input_tokens": 10 + len(said), "output_tokens": 1}
        self.event({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage}}, "message_start")
        index = 0
        for kind, texts in (("thinking", ["Let me ", "see."]), ("text", pieces)):
            block = {"type": kind, kind: ""}
            if kind == "thinking":
                block["signature"] = ""
            self.event({"type": "content_block_start", "index": index, "content_block": block},
                       "content_block_start")
            for text in texts:
                self.event({"type": "content_block_delta", "index": index,
                            "delta": {"type": kind + "_delta", kind: text}}, "content_block_delta")
            if kind == "thinking":
                self.event({"type": "content_block_delta", "index": index, "delta":
                            {"type": "signature_delta", "signature": "c2ln"}}, "content_block_delta")
            self.event({"type": "content_block_stop", "index": index}, "content_block_stop")
            index += 1
        self.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 9}}, "message_delta")
        self.event({"type": "message_stop"}, "message_stop")

    def refuse(self, status, text):
        data = json.dumps({"error": {"type": "server_error", "message": text}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(raw)
        with open(sys.argv[2], "ab") as log:
            log.write(json.dumps(body).encode() + b"\n")
        said = said_last(body)
        key = self.headers.get("Authorization") or self.headers.get("x-api-key")
        if key and "wrong" in key:
            return self.refuse(401, "invalid key")
        if said.startswith("broken") and said not in failed:
            failed.add(said)
            return self.refuse(500, "out of order")
        if said.startswith("refused"):
            return self.refuse(400, "not this")
        speak = self.anthropic if self.path.endswith("/messages") else self.openai
        try:
            speak(self.pieces(said), said, body.get("model", ""))
            self.chunk("")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        return None

    def pieces(self, said):
        if said.startswith("slow"):
            for i in range(10000):
                yield f"word{i} "
                time.sleep(0.05)
        if said.startswith("cut") and said not in failed:
            if said.startswith("cut once"):
                failed.add(said)
            yield "Half of "
            self.wfile.flush()
            self.connection.close()
            raise ConnectionResetError
        text = "You said: " + said
        if said.startswith("evil"):
            text = EVIL
        elif said.startswith("silent"):
            text = ""
        elif said in REPLIES:
            text = REPLIES[said]
        elif "summar" in said.lower() and len(said) > 200:
            text = SUMMARY
        for at in range(0, len(text), 5):
            yield text[at:at + 5]


def main():
    port = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Model)
    temporary = sys.argv[1] + ".tmp"
    with open(temporary, "w", encoding="ascii") as file:
        file.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    os.rename(temporary, sys.argv[1])
    server.serve_forever()


if __name__ == "__main__":
    main()
