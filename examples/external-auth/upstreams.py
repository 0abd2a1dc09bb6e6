"""An upstream on 127.0.0.1:9001, and on 127.0.0.1:9002 a service that says who may see it."""

from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

SESSIONS = {"s-1": "alice", "s-2": "bob"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body leave in one piece

    def answer(self, status, text, **fields):
        body = (text + "\n").encode()
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Web(Handler):
    def do_GET(self):
        self.answer(200, f"web got GET {self.path} from {self.headers.get('x-user', 'nobody')}")


class Authz(Handler):
    def do_GET(self):
        cookies = SimpleCookie(self.headers.get("cookie", ""))
        session = cookies["session"].value if "session" in cookies else None
        user = SESSIONS.get(session)
        path = self.headers.get("x-forwarded-uri", "")
        if user is None:
            self.answer(302, "log in first", location="https://login.example/")
        elif path.startswith("/admin") and user != "alice":
            self.answer(403, "only for alice")
        else:
            self.answer(200, "fine", x_user=user)


for port, service in [(9001, Web), (9002, Authz)]:
    server = ThreadingHTTPServer(("127.0.0.1", port), service)
    Thread(target=server.serve_forever).start()
