//! What scripts can do with values of the load time.

use rhai::{Array, Dynamic, Engine, ImmutableString};

use super::{
    current::{NativeResult, count_answer, too_long},
    local::Local,
};
use crate::{
    frozen::Frozen,
    values::{Cidr, Regex, Table},
};

/// `longest` bounds the text that `replace_all` may make, in bytes.
pub(super) fn register(engine: &mut Engine, longest: usize) {
    engine
        .register_type_with_name::<Local<Table>>("Table")
        .register_fn("get", |table: &mut Local<Table>, key: &str| {
            let found = table.get(key);
            if matches!(found, Some(Frozen::Answer(_))) {
                count_answer();
            }
            found.map_or(Dynamic::UNIT, Frozen::thaw_data)
        })
        .register_fn("get", |_: &mut Local<Table>, _: ()| Dynamic::UNIT)
        .register_fn("contains", |table: &mut Local<Table>, key: &str| {
            table.contains(key)
        })
        .register_fn("contains", |_: &mut Local<Table>, _: ()| false)
        .register_fn("len", |table: &mut Local<Table>| len(table.len()));

    engine
        .register_type_with_name::<Local<Cidr>>("Cidr")
        .register_fn("contains", |cidr: &mut Local<Cidr>, address: &str| {
            cidr.contains_text(address)
        })
        .register_fn("contains", |_: &mut Local<Cidr>, _: ()| false);

    engine
        .register_type_with_name::<Local<Regex>>("Regex")
        .register_fn("is_match", |regex: &mut Local<Regex>, text: &str| {
            regex.is_match(text)
        })
        .register_fn("is_match", |_: &mut Local<Regex>, _: ()| false)
        .register_fn("captures", |regex: &mut Local<Regex>, text: &str| {
            regex.captures(text).map_or(Dynamic::UNIT, |groups| {
                let groups = groups.into_iter();
                groups
                    .map(|group| {
                        group.map_or(Dynamic::UNIT, |text| ImmutableString::from(text).into())
                    })
                    .collect::<Array>()
                    .into()
            })
        })
        .register_fn("captures", |_: &mut Local<Regex>, _: ()| Dynamic::UNIT)
        .register_fn(
            "replace_all",
            move |regex: &mut Local<Regex>,
                  text: &str,
                  to: &str|
                  -> NativeResult<ImmutableString> {
                let replaced = regex.replace_all(text, to, longest);
                replaced.map(Into::into).map_err(|_| too_long())
            },
        )
        .register_fn("replace_all", |_: &mut Local<Regex>, _: (), _: &str| ());
}

fn len(items: usize) -> rhai::INT {
    rhai::INT::try_from(items).unwrap_or(rhai::INT::MAX)
}
