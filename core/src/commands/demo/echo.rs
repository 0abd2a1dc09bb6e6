//! An upstream that says what it got.

use async_trait::async_trait;
use http::{Response, StatusCode, header};
use pingora_core::{
    apps::http_app::{HttpServer, ServeHttp},
    protocols::http::ServerSession,
};

pub(super) struct Echo {
    name: &'static str,
}

impl Echo {
    pub(super) fn server(name: &'static str) -> HttpServer<Self> {
        HttpServer::new_app(Self { name })
    }
}

#[async_trait]
impl ServeHttp for Echo {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let request = session.req_header();
        let target = request.uri.path_and_query();
        let target = target.map_or("/", http::uri::PathAndQuery::as_str);
        let mut body = format!("{} got {} {target}\n", self.name, request.method);
        for (name, value) in &request.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            body.push_str(&format!("  {name}: {value}\n"));
        }
        let mut response = Response::new(body.into_bytes());
        *response.status_mut() = StatusCode::OK;
        let length = response.body().len();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, length.into());
        headers.insert(
            header::CONTENT_TYPE,
            http::HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        response
    }
}
