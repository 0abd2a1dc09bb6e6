"""Upstreams that say what they got: blue on 127.0.0.1:9001, green on 127.0.0.1:9002."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def handler(name):
    class Echo(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body leave in one piece

        def do_GET(self):
            seen = self.headers.get("x-tenant", "nothing")
            body = f"{name} got {self.command} {self.path}, x-tenant {seen}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Echo


for name, port in [("blue", 9001), ("green", 9002)]:
    server = ThreadingHTTPServer(("127.0.0.1", port), handler(name))
    Thread(target=server.serve_forever).start()
    print(f"{name} on 127.0.0.1:{port}", flush=True)
