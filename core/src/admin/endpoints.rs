//! What each endpoint answers.

use super::guard::{self, Refusal};
use super::{Operations, ReloadAnswer, Role, Settings};
use crate::metrics::CONTENT_TYPE;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE as CONTENT_TYPE_HEADER};
use http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Response, StatusCode};
use pingora_http::RequestHeader;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Metrics and status answers at a time on one listener, from asking for one to its last byte. They
/// can be megabytes; this bounds the memory that slow readers hold.
pub(super) const SCRAPES: usize = 4;

/// One listener's side of the proxy.
pub(super) struct App {
    operations: Arc<dyn Operations>,
    role: Role,
    /// The listener is bound to a loopback address.
    loopback: bool,
    pub(super) settings: Settings,
    scrapes: Arc<Semaphore>,
    reloads: Arc<Semaphore>,
}

impl App {
    pub(super) fn new(
        operations: Arc<dyn Operations>,
        role: Role,
        loopback: bool,
        settings: Settings,
    ) -> Self {
        Self {
            operations,
            role,
            loopback,
            settings,
            scrapes: Arc::new(Semaphore::new(SCRAPES)),
            reloads: Arc::new(Semaphore::new(1)),
        }
    }
}

/// An answer, and the turn that it keeps until it is sent.
pub(super) struct Answer {
    pub(super) response: Response<Vec<u8>>,
    pub(super) turn: Option<OwnedSemaphorePermit>,
}

impl From<Response<Vec<u8>>> for Answer {
    fn from(response: Response<Vec<u8>>) -> Self {
        Self {
            response,
            turn: None,
        }
    }
}

enum Endpoint {
    Health,
    Readiness,
    Metrics,
    Status,
    Reload,
}

impl Endpoint {
    fn find(role: Role, path: &str) -> Option<Self> {
        match (path, role) {
            ("/healthz", _) => Some(Self::Health),
            ("/readyz", _) => Some(Self::Readiness),
            ("/metrics", _) => Some(Self::Metrics),
            ("/status", Role::Admin) => Some(Self::Status),
            ("/reload", Role::Admin) => Some(Self::Reload),
            _ => None,
        }
    }

    fn allows(&self, method: &Method) -> Result<(), HeaderValue> {
        let (allowed, list): (&[Method], _) = match self {
            Self::Reload => (&[Method::POST], "POST"),
            _ => (&[Method::GET, Method::HEAD], "GET, HEAD"),
        };
        if allowed.contains(method) {
            Ok(())
        } else {
            Err(HeaderValue::from_static(list))
        }
    }
}

/// Answers one request.
pub(super) async fn answer(app: &App, request: &RequestHeader, has_body: bool) -> Answer {
    let host = guard::check_host(
        &request.uri,
        &request.headers,
        request.version,
        app.loopback,
    );
    if let Err(refusal) = host {
        return refused(refusal).into();
    }
    let Some(endpoint) = Endpoint::find(app.role, request.uri.path()) else {
        return text(StatusCode::NOT_FOUND, "not found\n").into();
    };
    if let Err(allow) = endpoint.allows(&request.method) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
        response.headers_mut().insert(ALLOW, allow);
        return response.into();
    }
    match endpoint {
        Endpoint::Health => text(StatusCode::OK, "ok\n").into(),
        Endpoint::Readiness => readiness(app).into(),
        Endpoint::Metrics => {
            let metrics = |operations: &dyn Operations| {
                let kind = HeaderValue::from_static(CONTENT_TYPE);
                respond(StatusCode::OK, kind, operations.metrics())
            };
            scrape(app, metrics).await
        }
        Endpoint::Status => {
            let status = |operations: &dyn Operations| json(StatusCode::OK, &operations.status());
            scrape(app, status).await
        }
        Endpoint::Reload => {
            if let Err(refusal) = guard::check_same_site(&request.uri, &request.headers) {
                return refused(refusal).into();
            }
            if has_body {
                return text(StatusCode::BAD_REQUEST, "a reload takes no body\n").into();
            }
            reload(app).await.into()
        }
    }
}

fn readiness(app: &App) -> Response<Vec<u8>> {
    match app.operations.readiness() {
        Ok(()) => text(StatusCode::OK, "ready\n"),
        Err(reason) => {
            let line = reason.lines().collect::<Vec<_>>().join(" ");
            text(StatusCode::SERVICE_UNAVAILABLE, &format!("{line}\n"))
        }
    }
}

/// Runs `make` on a thread where it may take its time.
async fn scrape<F>(app: &App, make: F) -> Answer
where
    F: FnOnce(&dyn Operations) -> Response<Vec<u8>> + Send + 'static,
{
    let turn = app.scrapes.clone().acquire_owned();
    let Ok(Ok(turn)) = timeout(app.settings.busy_timeout, turn).await else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many scrapes\n").into();
    };
    let operations = app.operations.clone();
    // The turn goes along and comes back: if the client leaves, it stays with the work.
    let work = tokio::task::spawn_blocking(move || (make(&*operations), turn));
    match work.await {
        Ok((response, turn)) => Answer {
            response,
            turn: Some(turn),
        },
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n").into(),
    }
}

async fn reload(app: &App) -> Response<Vec<u8>> {
    let turn = app.reloads.clone().acquire_owned();
    let Ok(Ok(turn)) = timeout(app.settings.busy_timeout, turn).await else {
        let busy = json!({"result": "failed", "errors": ["another reload is still running"]});
        return json(StatusCode::SERVICE_UNAVAILABLE, &busy);
    };
    let operations = app.operations.clone();
    let work = tokio::task::spawn_blocking(move || {
        let answer = operations.reload();
        drop(turn);
        answer
    });
    match work.await {
        Ok(ReloadAnswer::Loaded { revision }) => {
            let body = json!({"result": "loaded", "revision": revision});
            json(StatusCode::OK, &body)
        }
        Ok(ReloadAnswer::Unchanged { revision }) => {
            let body = json!({"result": "unchanged", "revision": revision});
            json(StatusCode::OK, &body)
        }
        Ok(ReloadAnswer::Failed { errors }) => {
            let body = json!({"result": "failed", "errors": errors});
            json(StatusCode::UNPROCESSABLE_ENTITY, &body)
        }
        Err(_) => {
            let body = json!({"result": "failed", "errors": ["the reload panicked"]});
            json(StatusCode::INTERNAL_SERVER_ERROR, &body)
        }
    }
}

fn refused(refusal: Refusal) -> Response<Vec<u8>> {
    match refusal {
        Refusal::BadHost => text(StatusCode::BAD_REQUEST, "bad host\n"),
        Refusal::ForeignHost => text(
            StatusCode::FORBIDDEN,
            "this listener answers to loopback names only\n",
        ),
        Refusal::CrossSite => text(StatusCode::FORBIDDEN, "cross-site request\n"),
    }
}

/// A plain-text answer.
pub(super) fn text(status: StatusCode, body: &str) -> Response<Vec<u8>> {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    respond(status, kind, body.as_bytes().to_vec())
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response<Vec<u8>> {
    let kind = HeaderValue::from_static("application/json");
    respond(status, kind, format!("{value}\n").into_bytes())
}

fn respond(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> Response<Vec<u8>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE_HEADER, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
