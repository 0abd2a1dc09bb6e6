//! The methods of a route that set up its gates.

use rhai::{Dynamic, Engine, NativeCallContext};

use super::{
    gate_draft::add_networks,
    route_dsl::{RouteHandle, networks_of},
};

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "deny",
            |call: NativeCallContext, route: &mut RouteHandle, networks: Dynamic| {
                route.change(&call, |route| {
                    add_networks(&mut route.gates.deny, networks_of(networks)?);
                    Ok(())
                })
            },
        )
        .register_fn(
            "allow",
            |call: NativeCallContext, route: &mut RouteHandle, networks: Dynamic| {
                route.change(&call, |route| {
                    let networks = networks_of(networks)?;
                    if networks.is_empty() {
                        return Err("no network is allowed, so nobody could come in".to_owned());
                    }
                    add_networks(&mut route.gates.allow, networks);
                    Ok(())
                })
            },
        );
}
