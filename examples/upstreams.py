"""The upstreams of an example, to try it with: in its folder, `python3 ../upstreams.py`.

There is one for each target of the pools in edgewright.toml, called as its pool; the second one of
`web` is `web-2`. It answers as requests.toml describes, or says what it got. Needs Python 3.11 or newer.
"""

import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


def chosen(answers, target, headers, body):
    """The first answer whose conditions hold."""
    for answer in answers:
        sent = answer.get("sent", {}).items()
        if (
            target.startswith(answer.get("target", ""))
            and answer.get("holds", "") in body
            and all(value in headers.get_all(name, []) for name, value in sent)
        ):
            return answer
    return None


def handler(pool, answers):
    class Upstream(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body leave in one piece

        def answer(self):
            received = self.rfile.read(int(self.headers.get("content-length", 0))).decode(errors="replace")
            found = chosen(answers, self.path, self.headers, received)
            if found is None:
                found = {"body": f"{pool} got {self.command} {self.path}\n" + self.own_headers()}
            body = found.get("body", "").encode()
            self.send_response(found.get("status", 200))
            for name, values in found.get("headers", {}).items():
                for value in values if isinstance(values, list) else [values]:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def own_headers(self):
            """What the proxy may have added."""
            return "".join(f"  {name}: {value}\n" for name, value in self.headers.items() if name.lower().startswith("x-"))

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    return Upstream


def read(name):
    path = Path(name)
    return tomllib.loads(path.read_text()) if path.exists() else {}


scripts = read("requests.toml").get("upstreams", {})
for pool, settings in read("edgewright.toml").get("pools", {}).items():
    for index, target in enumerate(settings["targets"]):
        name = pool if index == 0 else f"{pool}-{index + 1}"
        script = scripts.get(name, {})
        if script.get("down"):
            print(f"{name} is down")
            continue
        address = target["target"] if isinstance(target, dict) else target
        host, port = address.rsplit(":", 1)
        server = ThreadingHTTPServer((host, int(port)), handler(name, script.get("answers", [])))
        Thread(target=server.serve_forever).start()
        print(f"{name} on {host}:{port}", flush=True)
