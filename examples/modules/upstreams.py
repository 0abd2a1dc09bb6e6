"""An upstream that says what it got: web on 127.0.0.1:9001."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body leave in one piece

    def do_GET(self):
        client = self.headers.get("x-client", "nobody")
        body = f"web got {self.command} {self.path} from {client}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print("web on 127.0.0.1:9001", flush=True)
ThreadingHTTPServer(("127.0.0.1", 9001), Echo).serve_forever()
