"""An upstream on 127.0.0.1:9001 that says what it got."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body leave in one piece

    def do_GET(self):
        user = self.headers.get("x-user", "somebody")
        roles = self.headers.get("x-roles", "")
        body = f"web got GET {self.path} from {user} ({roles})\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", 9001), Echo).serve_forever()
