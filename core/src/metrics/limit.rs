//! The limits whose hits are counted.

macro_rules! limits {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// A limit that a request, a response or a script can hit; `edgewright_limit_hits_total`
        /// has one series for each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Limit { $($(#[$doc])* $variant,)+ }

        impl Limit {
            /// All of them, in the order of their discriminants.
            pub const ALL: [Limit; [$($name),+].len()] = [$(Limit::$variant),+];

            /// The value of the `limit` label, which is the configuration's key.
            pub fn name(self) -> &'static str {
                match self { $(Limit::$variant => $name,)+ }
            }
        }
    };
}

limits! {
    /// `[limits] request_header`: bytes of the request's header.
    RequestHeader = "request_header",
    /// `[limits] request_headers`: number of header fields.
    RequestHeaders = "request_headers",
    /// `[limits] uri`: bytes of the request target.
    Uri = "uri",
    /// `[limits] request_body`: bytes of the request's body.
    RequestBody = "request_body",
    /// `[limits] request_read_timeout`: the client was too slow sending.
    RequestReadTimeout = "request_read_timeout",
    /// `[limits] response_write_timeout`: the client was too slow receiving.
    ResponseWriteTimeout = "response_write_timeout",
    /// `[limits] connections`: a connection had to wait until another one ended.
    Connections = "connections",
    /// `[limits] password_checks`: passwords verified at a time.
    PasswordChecks = "password_checks",
    /// `[limits] mirrors`: copies of requests at a time.
    Mirrors = "mirrors",
    /// `[script] operations` of one hook call.
    ScriptOperations = "operations",
    /// `[script] time` of one hook call.
    ScriptTime = "time",
    /// `[script] memory` of one hook call.
    ScriptMemory = "memory",
    /// `[script] call_depth`.
    ScriptCallDepth = "call_depth",
    /// `[script] string`: bytes of one string.
    ScriptString = "string",
    /// `[script] items` of one array or map.
    ScriptItems = "items",
    /// `[script] body`: bytes of a body that hooks get or make.
    ScriptBody = "body",
    /// `[script] bodies`: bytes of all bodies that are kept for hooks.
    ScriptBodies = "bodies",
    /// `[script] fetches` of one hook call.
    ScriptFetches = "fetches",
    /// `[script] waiting` or `waiting_memory`.
    ScriptWaiting = "waiting",
    /// The bound on route labels ([`MAX_ROUTES`](super::MAX_ROUTES)): one hit for each route that
    /// is counted under `overflow`.
    RouteLabels = "route_labels",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn discriminants_index_all_and_names_differ() {
        for (index, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, index);
        }
        let names: HashSet<_> = Limit::ALL.iter().map(|l| l.name()).collect();
        assert_eq!(names.len(), Limit::ALL.len());
    }
}
