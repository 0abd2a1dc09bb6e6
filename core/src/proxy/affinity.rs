//! Where a request goes because of who sent it: the pool that its cookie or a hash says, and what it wishes for there.

use edgewright_script::{
    engine::Pick,
    program::{PoolId, Split, Stamps, Sticky},
    stable_hash::StampKey,
};
use http::{HeaderValue, header::SET_COOKIE};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use smallvec::SmallVec;

use super::{client, context::State, hooks::Exchange, view::RequestView};
use crate::{
    metrics::Stickiness,
    pools::{EndpointId, OF_ADDRESS, Wanted, Wish},
    worker::Handle,
};

/// The endpoint that a script has picked.
#[derive(Debug)]
pub(super) struct Target {
    address: Box<str>,
    only: bool,
}

/// Sends the request to a pool, with the key that the pool wants.
pub(super) fn to_pool(pool: PoolId, exchange: &mut Exchange<'_>) {
    let handle = exchange.handle;
    exchange.state.pool = Some(pool);
    exchange.state.key = None;
    if let Some(rare) = &mut exchange.state.rare {
        rare.target = None;
    }
    if let Some(hash_on) = &handle.pool(pool).0.config().hash_on {
        exchange.state.key = hash_on.key(&view(exchange));
    }
    if sticky(handle, exchange.state).is_some() {
        read(exchange);
    }
}

/// Sends the request to one of several pools: the one that its cookie says, as long as somebody is there.
pub(super) fn to_split(split: &Split, exchange: &mut Exchange<'_>) {
    let handle = exchange.handle;
    if let Some(sticky) = sticky(handle, exchange.state)
        && let Some(stamps) = read(exchange)
    {
        let mut pools = split.pools();
        let same = pools.find(|id| {
            let pool = &handle.pool(*id).0;
            sticky.of_pool(pool.name()) == stamps.pool && pool.can_balance()
        });
        if let Some(pool) = same {
            return to_pool(pool, exchange);
        }
    }
    let pool = split.pool_for(&view(exchange), || fastrand::u64(..));
    to_pool(pool, exchange);
}

/// Sends the request where a script has said.
pub(super) fn to_pick(pick: Pick, exchange: &mut Exchange<'_>) {
    to_pool(pick.pool, exchange);
    if pick.key.is_some() {
        exchange.state.key = pick.key;
    }
    if let Some(address) = pick.target {
        let only = pick.only;
        exchange.state.rare().target = Some(Target { address, only });
    }
}

/// A [`Wish`] that doesn't borrow from the request.
pub(super) struct Kept {
    avoid: SmallVec<[EndpointId; 4]>,
    key: Option<u64>,
    target: Option<Box<str>>,
    only: bool,
    stamp: Option<(StampKey, u64)>,
}

/// What the request wishes of its pool, for one that waits.
pub(super) fn kept(handle: &Handle, state: &State) -> Kept {
    let wish = wish(handle, state);
    let (target, stamp) = match wish.target {
        Some(Wanted::Address(address)) => (Some(address.into()), None),
        Some(Wanted::Stamp(key, stamp)) => (None, Some((*key, stamp))),
        None => (None, None),
    };
    Kept {
        avoid: wish.avoid.into(),
        key: wish.key,
        target,
        only: wish.only,
        stamp,
    }
}

impl Kept {
    pub(super) fn wish(&self) -> Wish<'_> {
        let address = self.target.as_deref().map(Wanted::Address);
        let stamp = self.stamp.as_ref();
        Wish {
            avoid: &self.avoid,
            key: self.key,
            target: address.or_else(|| stamp.map(|(key, stamp)| Wanted::Stamp(key, *stamp))),
            only: self.only,
        }
    }
}

/// What the request wishes of its pool.
pub(super) fn wish<'a>(handle: &'a Handle, state: &'a State) -> Wish<'a> {
    let mut wish = Wish {
        key: state.key,
        ..Wish::default()
    };
    let Some(rare) = state.rare.as_deref() else {
        return wish;
    };
    wish.avoid = &rare.tried;
    if let Some(target) = &rare.target {
        wish.target = Some(Wanted::Address(&target.address));
        wish.only = target.only;
    } else if let Some(stamps) = rare.stamps
        && let Some(sticky) = sticky(handle, state)
    {
        wish.target = Some(Wanted::Stamp(sticky.key(), stamps.target));
    }
    wish
}

/// Gives the client a cookie, unless it has the right one already.
pub(super) fn set_cookie(
    session: &Session,
    handle: &Handle,
    state: &State,
    response: &mut ResponseHeader,
) {
    let (Some(sticky), Some(pool), Some(picked)) =
        (sticky(handle, state), state.pool, &state.picked)
    else {
        return;
    };
    let (pool, metrics) = handle.pool(pool);
    let stamps = Stamps {
        pool: sticky.of_pool(pool.name()),
        target: sticky.key().stamp(OF_ADDRESS, picked.address()),
    };
    let known = state.rare.as_ref().and_then(|rare| rare.stamps);
    metrics.stuck(match known {
        Some(known) if known == stamps => Stickiness::Kept,
        Some(_) => Stickiness::Moved,
        None => Stickiness::New,
    });
    if known == Some(stamps) {
        return;
    }
    let line = sticky.line(stamps, client::scheme(session) == "https");
    // The program was loaded with such a line.
    if let Ok(value) = line.and_then(|line| HeaderValue::from_str(&line).map_err(|e| e.to_string()))
    {
        let _ = response.append_header(SET_COOKIE, value);
    }
}

fn sticky<'h>(handle: &'h Handle, state: &State) -> Option<&'h Sticky> {
    handle.route(state.route?).sticky.as_deref()
}

/// What the cookie of the request says, noted for later.
fn read(exchange: &mut Exchange<'_>) -> Option<Stamps> {
    let stamps = sticky(exchange.handle, exchange.state)?.read(&view(exchange))?;
    exchange.state.rare().stamps = Some(stamps);
    Some(stamps)
}

fn view<'a>(exchange: &'a mut Exchange<'_>) -> RequestView<'a> {
    RequestView {
        session: exchange.session,
        generation: exchange.handle,
        state: exchange.state,
    }
}
