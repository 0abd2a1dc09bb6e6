//! The smallest and the largest values of each type that a script can hold.

use std::{any::TypeId, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use rhai::{Array, Blob, Dynamic, FLOAT, FnPtr, INT, ImmutableString, Map};

use crate::{
    answer::Answer,
    engine::{
        Limits, answer_api, attempt_api, local::Local, metric_api, reply_api, request_api,
        response_api,
    },
    frozen::Frozen,
    outbound::Incoming,
    password::Htpasswd,
    state::{
        Algorithm, Cache, CacheRule, Concurrency, ConcurrencyRule, Counter, CounterRule, Identity,
        Rate, RateRule, State, StateStore,
        metric::{Metric, MetricKind, MetricRule},
    },
    values::{Cidr, MOST_SECRET, Regex, Secret, Table},
};

/// Types that no value of a script has: Rhai's functions take them for the sake of other hosts.
pub(super) fn never_in_a_script(id: TypeId) -> bool {
    fn number<T: 'static>(id: TypeId) -> bool {
        id == TypeId::of::<T>()
            || id == TypeId::of::<std::ops::Range<T>>()
            || id == TypeId::of::<std::ops::RangeInclusive<T>>()
    }
    number::<u8>(id)
        || number::<u16>(id)
        || number::<u32>(id)
        || number::<u64>(id)
        || number::<u128>(id)
        || number::<i8>(id)
        || number::<i16>(id)
        || number::<i32>(id)
        || number::<i128>(id)
        || number::<f32>(id)
}

fn text(of: char, limits: &Limits) -> Dynamic {
    let count = limits.string / of.len_utf8();
    ImmutableString::from(of.to_string().repeat(count)).into()
}

/// The smallest and the largest values of a type that a script can hold.
pub(super) fn samples(id: TypeId, limits: &Limits) -> Vec<Dynamic> {
    fn one<T: rhai::Variant + Clone>(value: T) -> Vec<Dynamic> {
        vec![Dynamic::from(value)]
    }
    let nested = || {
        let inner = |_| Dynamic::from_array(Array::new());
        (0..limits.items).map(inner).collect::<Array>()
    };
    let deep = || {
        (1..limits.items).fold(Dynamic::from_array(Array::new()), |inner, _| {
            Dynamic::from_array(vec![inner])
        })
    };
    let numbers: Array = (0..limits.items).map(|n| Dynamic::from(n as INT)).collect();
    let map: Map = (0..limits.items)
        .map(|n| (format!("k{n}").into(), Dynamic::from(n as INT)))
        .collect();
    // Assigning to a key is not held to the size of texts; each of these is the same one.
    let shared = text('a', limits);
    let texts: Map = (0..limits.items)
        .map(|n| (format!("k{n}").into(), shared.clone()))
        .collect();
    let functions = || ["yes", "same", "fails"].map(|name| FnPtr::new(name).unwrap().into());
    if id == TypeId::of::<()>() {
        one(())
    } else if id == TypeId::of::<bool>() {
        vec![true.into(), false.into()]
    } else if id == TypeId::of::<INT>() {
        [INT::MIN, -1, 0, 4095, 65_536, INT::MAX]
            .map(Dynamic::from)
            .to_vec()
    } else if id == TypeId::of::<FLOAT>() {
        [FLOAT::MIN, -0.5, 0.0, 1e300, FLOAT::NAN, FLOAT::INFINITY]
            .map(Dynamic::from)
            .to_vec()
    } else if id == TypeId::of::<char>() {
        ['a', '\u{1}', '\u{390}', '\u{10ffff}']
            .map(Dynamic::from)
            .to_vec()
    } else if id == TypeId::of::<ImmutableString>() {
        // What escapes, what grows in upper case, what takes the most bytes.
        let mut texts = ['a', '\u{1}', '\u{390}', '\u{10ffff}']
            .map(|c| text(c, limits))
            .to_vec();
        texts.extend(["", "yes"].map(Dynamic::from));
        texts
    } else if id == TypeId::of::<Array>() {
        vec![
            Dynamic::from_array(Array::new()),
            Dynamic::from_array(numbers),
            Dynamic::from_array(nested()),
            Dynamic::from_array(vec![text('\u{1}', limits)]),
            deep(),
        ]
    } else if id == TypeId::of::<Map>() {
        let deep = Map::from_iter([("k".into(), deep())]);
        let body = Map::from_iter([("body".into(), text('\u{1}', limits))]);
        vec![
            Map::new().into(),
            map.into(),
            deep.into(),
            body.into(),
            texts.into(),
        ]
    } else if id == TypeId::of::<Blob>() {
        vec![
            Dynamic::from_blob(Blob::new()),
            Dynamic::from_blob(vec![0xff; limits.items]),
        ]
    } else if id == TypeId::of::<FnPtr>() {
        functions().to_vec()
    } else if id == TypeId::of::<Dynamic>() {
        let mut all = vec![
            Dynamic::UNIT,
            INT::MAX.into(),
            text('a', limits),
            Dynamic::from_array(numbers),
            deep(),
            map.into(),
            texts.into(),
        ];
        all.extend(functions());
        all
    } else if id == TypeId::of::<std::ops::Range<INT>>() {
        vec![
            Dynamic::from(0..INT::MAX),
            Dynamic::from(INT::MIN..INT::MAX),
            Dynamic::from(0..0),
        ]
    } else if id == TypeId::of::<std::ops::RangeInclusive<INT>>() {
        vec![
            Dynamic::from(0..=INT::MAX),
            Dynamic::from(INT::MIN..=INT::MAX),
        ]
    } else if id == TypeId::of::<std::ops::Range<FLOAT>>() {
        vec![Dynamic::from(0.0..FLOAT::MAX)]
    } else if id == TypeId::of::<request_api::RequestHandle>() {
        one(request_api::RequestHandle)
    } else if id == TypeId::of::<attempt_api::AttemptHandle>() {
        one(attempt_api::AttemptHandle)
    } else if id == TypeId::of::<response_api::ResponseHandle>() {
        one(response_api::ResponseHandle)
    } else if id == TypeId::of::<answer_api::ScriptAnswer>() {
        one(answer_api::ScriptAnswer(Answer::new(200, "a").unwrap()))
    } else if id == TypeId::of::<Local<Table>>() {
        one(Local::new(Table::new([(
            "a".to_owned(),
            Frozen::Text("a".into()),
        )])))
    } else if id == TypeId::of::<Local<Cidr>>() {
        one(Local::new(Cidr::parse(["10.0.0.0/8"]).unwrap()))
    } else if id == TypeId::of::<Local<Regex>>() {
        // Each match of the first takes a look at the rest of the text; the second has many groups
        // that hold the same.
        let groups = format!("{}a+{}", "(".repeat(50), ")".repeat(50));
        let patterns = ["[^b]*b|a", groups.as_str(), "(a+)+$"];
        patterns
            .map(|pattern| {
                let regex = Regex::compile(pattern).unwrap();
                // What it keeps from one search for the next is no matter of one call.
                regex.captures(&"a".repeat(limits.string));
                Dynamic::from(Local::new(regex))
            })
            .to_vec()
    } else if id == TypeId::of::<Local<Secret>>() {
        let largest = "a".repeat(MOST_SECRET);
        let secrets = ["a", largest.as_str()];
        secrets
            .map(|text| Dynamic::from(Local::new(Secret::from_file(text.as_bytes()).unwrap())))
            .to_vec()
    } else if id == TypeId::of::<Local<Htpasswd>>() {
        let users = Htpasswd::from_file(b"yes:{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=");
        one(Local::new(users.unwrap()))
    } else if id == TypeId::of::<Local<Rate>>() {
        let rate = Rate::new(RateRule::new(
            100,
            Duration::from_secs(60),
            Algorithm::Sliding,
        ));
        State::Rate(rate.clone()).bind(&StateStore::default(), &Identity::Name("r".to_owned()));
        one(Local::new(rate))
    } else if id == TypeId::of::<Local<Counter>>() {
        let counter = Counter::new(CounterRule::default());
        State::Counter(counter.clone())
            .bind(&StateStore::default(), &Identity::Name("c".to_owned()));
        one(Local::new(counter))
    } else if id == TypeId::of::<Local<Concurrency>>() {
        let slots = Concurrency::new(ConcurrencyRule::new(2));
        State::Concurrency(slots.clone())
            .bind(&StateStore::default(), &Identity::Name("s".to_owned()));
        one(Local::new(slots))
    } else if id == TypeId::of::<Local<Cache>>() {
        let cache = Cache::new(CacheRule::new(Duration::from_secs(60), 100));
        State::Cache(cache.clone()).bind(&StateStore::default(), &Identity::Name("k".to_owned()));
        one(Local::new(cache))
    } else if id == TypeId::of::<metric_api::Labelled>() {
        let metric = Metric::new(MetricRule {
            name: "m".to_owned(),
            kind: MetricKind::Histogram,
            labels: Vec::new(),
        });
        metric.bind(&StateStore::default());
        one(metric_api::Labelled::of(metric))
    } else if id == TypeId::of::<reply_api::ScriptReply>() {
        one(reply_api::ScriptReply::new(Ok(Incoming {
            status: StatusCode::OK,
            headers: http::HeaderMap::new(),
            body: Bytes::new(),
            ..Incoming::default()
        })))
    } else if id == TypeId::of::<reply_api::ScriptBody>() {
        // What JSON holds is held to the budget of memory; see the tests of `engine/json.rs`.
        let texts = [
            "x".repeat(16 * 1024 * 1024),
            "[".repeat(1000),
            format!("[{}1]", "1,".repeat(9999)),
        ];
        texts
            .map(|text| Dynamic::from(reply_api::ScriptBody(Bytes::from(text))))
            .to_vec()
    } else {
        Vec::new()
    }
}
