//! The types of edgewright's own values, for what has to name the types that natives take.

use std::any::TypeId;

use super::{
    Local,
    answer_api::ScriptAnswer,
    attempt_api::AttemptHandle,
    metric_api::Labelled,
    reply_api::{ScriptBody, ScriptReply},
    request_api::RequestHandle,
    response_api::ResponseHandle,
};
use crate::{
    jwt::Jwks,
    password::Htpasswd,
    state::{Cache, Concurrency, Counter, Rate},
    values::{Cidr, Regex, Secret, Table},
};

/// What the reference calls them.
pub(crate) fn own_types() -> Vec<(TypeId, &'static str)> {
    vec![
        (TypeId::of::<RequestHandle>(), "Request"),
        (TypeId::of::<ResponseHandle>(), "Response"),
        (TypeId::of::<ScriptAnswer>(), "Answer"),
        (TypeId::of::<ScriptReply>(), "Reply"),
        (TypeId::of::<ScriptBody>(), "Body"),
        (TypeId::of::<Local<Table>>(), "Table"),
        (TypeId::of::<Local<Cidr>>(), "Cidr"),
        (TypeId::of::<Local<Regex>>(), "Regex"),
        (TypeId::of::<Local<Rate>>(), "Rate"),
        (TypeId::of::<Local<Counter>>(), "Counter"),
        (TypeId::of::<Local<Cache>>(), "Cache"),
        (TypeId::of::<Local<Concurrency>>(), "Concurrency"),
        (TypeId::of::<Labelled>(), "Metric"),
        (TypeId::of::<AttemptHandle>(), "Attempt"),
        (TypeId::of::<Local<Secret>>(), "Secret"),
        (TypeId::of::<Local<Htpasswd>>(), "Htpasswd"),
        (TypeId::of::<Local<Jwks>>(), "Jwks"),
    ]
}
