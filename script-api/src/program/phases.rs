//! What may stand in which hook: one table, behind the checks at load (`lint::phases`), the refusals
//! of the natives and `docs/reference.md`.

use super::HookKind;

/// What a call or an assignment asks of the place where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// Nothing: it may stand at the top level and in every hook.
    Nothing,
    /// The load time: it makes a part of the program, or reads what the program is made of.
    LoadTime,
    /// A hook, of whatever kind: it uses what requests have left behind.
    Hook,
    /// Somebody who takes an answer: a hook that may give one, or a constant of the top level.
    Answer,
    /// A hook that may wait for other services.
    Waiting,
    /// A request.
    Request,
    /// A request whose route is known, so that what is kept for later hooks finds them.
    RequestValues,
    /// A request that was not sent yet and whose route is known.
    RequestChange,
    /// A request whose end is still to come, so that what it takes is given back.
    RequestSlot,
    /// The whole body of the request.
    RequestBody,
    /// The body of a request that was not sent yet.
    RequestBodyChange,
    /// A function that says where the request goes.
    Destination,
    /// A response.
    Response,
    /// A response whose header was not sent yet.
    ResponseChange,
    /// The body of the response, or a piece of it.
    ResponseBody,
}

impl Need {
    /// All, in the order of the phase table.
    pub const ALL: [Self; 15] = [
        Self::Nothing,
        Self::LoadTime,
        Self::Hook,
        Self::Answer,
        Self::Waiting,
        Self::Request,
        Self::RequestValues,
        Self::RequestChange,
        Self::RequestSlot,
        Self::RequestBody,
        Self::RequestBodyChange,
        Self::Destination,
        Self::Response,
        Self::ResponseChange,
        Self::ResponseBody,
    ];

    /// What it is for, in the phase table.
    pub(crate) const fn described(self) -> &'static str {
        match self {
            Self::Nothing => "ask for nothing",
            Self::LoadTime => "make a part of the program",
            Self::Hook => "use shared state and metrics",
            Self::Answer => "make an answer",
            Self::Waiting => "wait for other services",
            Self::Request => "look at the request",
            Self::RequestValues => "keep a value for later hooks",
            Self::RequestChange => "change the request",
            Self::RequestSlot => "take a slot for the request",
            Self::RequestBody => "look at the request's body",
            Self::RequestBodyChange => "change it",
            Self::Destination => "say where the request goes",
            Self::Response => "look at the response",
            Self::ResponseChange => "change its status and header",
            Self::ResponseBody => "look at its body, and change it",
        }
    }

    /// Why what needs this can't stand where it isn't met.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Nothing | Self::Hook => "it needs a hook",
            Self::LoadTime => "it belongs to the top level",
            Self::Answer => "nobody takes an answer there",
            Self::Waiting => "it waits",
            Self::Request => "there is no request",
            Self::RequestValues | Self::RequestChange => "the request can't be changed there",
            Self::RequestSlot => "nothing would give the slot back",
            Self::RequestBody => "the body of the request isn't there",
            Self::RequestBodyChange => "the body of the request can't be changed there",
            Self::Destination => "it says where a request goes",
            Self::Response => "there is no response",
            Self::ResponseChange => "the header of the response can't be changed there",
            Self::ResponseBody => "the body of the response isn't there",
        }
    }

    /// Whether the top level has it.
    pub const fn at_top_level(self) -> bool {
        matches!(self, Self::Nothing | Self::LoadTime | Self::Answer)
    }

    /// The kinds of hooks that have it, in their order.
    pub fn kinds(self) -> impl Iterator<Item = HookKind> {
        HookKind::ALL.into_iter().filter(move |kind| kind.has(self))
    }

    /// Where what needs this may stand, in words: "in `on_request` and `.to`".
    pub fn places(self) -> String {
        let kinds: Vec<&str> = self.kinds().map(HookKind::written).collect();
        let hooks = match kinds.split_last() {
            None => return "at the top level".to_owned(),
            Some(_) if kinds.len() == HookKind::ALL.len() => "in every hook".to_owned(),
            Some((only, [])) => format!("in {only}"),
            Some((last, others)) => format!("in {} and {last}", others.join(", ")),
        };
        if self.at_top_level() {
            format!("at the top level, {hooks}")
        } else {
            hooks
        }
    }
}

impl HookKind {
    /// Every kind, in the order in which they run for a request.
    pub const ALL: [Self; 9] = [
        Self::When,
        Self::OnRequest,
        Self::OnRequestBody,
        Self::To,
        Self::Respond,
        Self::OnResponse,
        Self::OnResponseBody,
        Self::OnLog,
        Self::Every,
    ];

    /// What a hook of this kind has for what stands in it: the phase table, one line for each kind.
    #[rustfmt::skip]
    const fn needs_met(self) -> &'static [Need] {
        use Need::{
            Answer, Destination, Hook, Request, RequestBody, RequestBodyChange, RequestChange, RequestSlot, RequestValues,
            Response, ResponseBody, ResponseChange, Waiting,
        };
        match self {
            Self::When => &[Hook, Request],
            Self::OnRequest => &[Hook, Answer, Waiting, Request, RequestValues, RequestChange, RequestSlot],
            Self::OnRequestBody => &[Hook, Answer, Waiting, Request, RequestValues, RequestChange, RequestSlot, RequestBody, RequestBodyChange],
            Self::To => &[Hook, Answer, Waiting, Request, RequestValues, RequestChange, RequestSlot, RequestBody, Destination],
            Self::Respond => &[Hook, Answer, Request, RequestValues, RequestChange, RequestSlot, RequestBody],
            Self::OnResponse => &[Hook, Answer, Waiting, Request, RequestValues, RequestBody, Response, ResponseChange],
            Self::OnResponseBody => &[Hook, Answer, Request, RequestValues, RequestBody, Response, ResponseBody],
            Self::OnLog => &[Hook, Request, RequestValues, RequestBody, Response],
            Self::Every => &[Hook, Waiting],
        }
    }

    /// Whether what needs this may stand in hooks of this kind.
    pub fn has(self, need: Need) -> bool {
        need == Need::Nothing || self.needs_met().contains(&need)
    }

    /// As it is written in a program, in backquotes.
    pub const fn written(self) -> &'static str {
        match self {
            Self::When => "`.when`",
            Self::OnRequest => "`on_request`",
            Self::OnRequestBody => "`on_request_body`",
            Self::To => "`.to`",
            Self::Respond => "`.respond`",
            Self::OnResponse => "`on_response`",
            Self::OnResponseBody => "`on_response_body`",
            Self::OnLog => "`on_log`",
            Self::Every => "`every`",
        }
    }
}
