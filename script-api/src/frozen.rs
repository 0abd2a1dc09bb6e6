//! Constants and captured values as plain data, so that every worker can have its own copy.

use std::{collections::BTreeMap, sync::Arc};

use rhai::{AST, ASTNode, Array, Dynamic, Expr, FnPtr, Map};

use crate::{
    answer::Answer,
    engine::{Local, ScriptAnswer, is_out_of_memory},
    jwt::Jwks,
    password::Htpasswd,
    state::{Cache, Concurrency, Counter, Rate, State},
    values::{Cidr, Regex, Secret, Table},
};

/// How deep arrays and maps may be nested in a frozen value.
const MAX_DEPTH: usize = 64;

/// A value of the load time: plain data, a native handle or a function. `Send` and `Sync`, unlike
/// the interpreter's own values, which count their references without locks.
#[derive(Debug, Clone, PartialEq)]
pub enum Frozen {
    /// `()`
    Unit,
    /// `true`, `false`
    Bool(bool),
    /// A whole number
    Int(i64),
    /// A floating-point number
    Float(f64),
    /// One character
    Char(char),
    /// Text
    Text(Arc<str>),
    /// Bytes
    Blob(Arc<[u8]>),
    /// An array
    Array(Vec<Frozen>),
    /// An object map, in the order of its keys
    Map(Vec<(String, Frozen)>),
    /// `table(..)`
    Table(Table),
    /// `cidr(..)`
    Cidr(Cidr),
    /// `regex(..)`
    Regex(Regex),
    /// `secret(..)`
    Secret(Secret),
    /// `htpasswd(..)`
    Htpasswd(Htpasswd),
    /// `jwks(..)`
    Jwks(Jwks),
    /// `respond(..)`, `redirect(..)`
    Answer(Answer),
    /// `rate(..)`, `counter(..)`, `cache(..)`, `concurrency(..)`
    State(State),
    /// A function of the program, or a closure with what it captured
    Function(Function),
}

/// A function of the program by its name, with the values that a closure captured.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name; closures have the names that Rhai gives them (`anon$..`), which are derived from
    /// their text and so the same in every engine that compiles the same source.
    pub name: String,
    /// The captured values, which stand before the other arguments.
    pub captures: Vec<Frozen>,
}

impl Frozen {
    /// Takes a value out of the interpreter.
    ///
    /// # Errors
    /// Names the type that can't be kept.
    pub fn freeze(value: &Dynamic) -> Result<Self, String> {
        freeze(value, 0)
    }

    /// Makes a value for an interpreter, with nothing shared but native handles. `closures` are
    /// the closures of the program in that interpreter, by their names.
    pub(crate) fn thaw(&self, closures: &Closures) -> Dynamic {
        match self {
            Self::Unit => Dynamic::UNIT,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Char(value) => (*value).into(),
            Self::Text(value) => (&**value).into(),
            Self::Blob(value) => Dynamic::from_blob(value.to_vec()),
            Self::Array(items) => {
                let items = items.iter().map(|item| item.thaw(closures));
                items.collect::<Array>().into()
            }
            Self::Map(entries) => {
                let entries = entries.iter();
                let entries =
                    entries.map(|(key, value)| (key.as_str().into(), value.thaw(closures)));
                entries.collect::<Map>().into()
            }
            Self::Table(table) => Dynamic::from(Local::new(table.clone())),
            Self::Cidr(cidr) => Dynamic::from(Local::new(cidr.clone())),
            Self::Regex(regex) => Dynamic::from(Local::new(regex.with_own_cache())),
            Self::Secret(secret) => Dynamic::from(Local::new(secret.clone())),
            Self::Htpasswd(users) => Dynamic::from(Local::new(users.clone())),
            Self::Jwks(set) => Dynamic::from(Local::new(set.clone())),
            Self::Answer(answer) => Dynamic::from(ScriptAnswer(answer.unshared())),
            Self::State(State::Rate(rate)) => Dynamic::from(Local::new(rate.clone())),
            Self::State(State::Counter(counter)) => Dynamic::from(Local::new(counter.clone())),
            Self::State(State::Cache(cache)) => Dynamic::from(Local::new(cache.clone())),
            Self::State(State::Concurrency(slots)) => Dynamic::from(Local::new(slots.clone())),
            Self::Function(function) => function.thaw(closures),
        }
    }

    /// Makes a value that holds no function, for a table.
    pub(crate) fn thaw_data(&self) -> Dynamic {
        self.thaw(&Closures::default())
    }

    /// Whether it is plain data, all through: nothing native and no function.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Self::Unit
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Char(_)
            | Self::Text(_)
            | Self::Blob(_) => true,
            Self::Array(items) => items.iter().all(Self::is_plain),
            Self::Map(entries) => entries.iter().all(|(_, value)| value.is_plain()),
            Self::Table(_)
            | Self::Cidr(_)
            | Self::Regex(_)
            | Self::Secret(_)
            | Self::Htpasswd(_)
            | Self::Jwks(_)
            | Self::Answer(_)
            | Self::State(_)
            | Self::Function(_) => false,
        }
    }

    /// About the bytes that it takes, and that its copy in an interpreter takes. Natives count as
    /// small: what they share is not theirs.
    pub(crate) fn size(&self) -> usize {
        let more = match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Array(items) => items.iter().map(Self::size).sum(),
            Self::Map(entries) => {
                let entries = entries.iter();
                entries
                    .map(|(key, value)| size_of::<String>() + key.len() + value.size())
                    .sum()
            }
            _ => 0,
        };
        size_of::<Self>() + more
    }

    /// Whether a function is in it.
    pub(crate) fn has_function(&self) -> bool {
        match self {
            Self::Function(_) => true,
            Self::Array(items) => items.iter().any(Self::has_function),
            Self::Map(entries) => entries.iter().any(|(_, value)| value.has_function()),
            _ => false,
        }
    }
}

/// The closures of a program, by the names that Rhai gives them. They can't be made from their names,
/// only be found in the syntax tree.
#[derive(Debug, Default)]
pub(crate) struct Closures(BTreeMap<String, FnPtr>);

impl Closures {
    /// Finds them in a tree that was compiled without optimisation.
    pub(crate) fn of(ast: &AST) -> Self {
        let mut found = BTreeMap::new();
        ast.walk(&mut |path: &[ASTNode]| {
            if let Some(ASTNode::Expr(Expr::DynamicConstant(value, _))) = path.last()
                && let Some(pointer) = value.read_lock::<FnPtr>()
            {
                found.insert(pointer.fn_name().to_owned(), pointer.clone());
            }
            true
        });
        Self(found)
    }
}

impl Function {
    fn thaw(&self, closures: &Closures) -> Dynamic {
        let known = closures.0.get(&self.name).cloned();
        let pointer = known.or_else(|| FnPtr::new(self.name.as_str()).ok());
        let Some(mut pointer) = pointer else {
            // A name that calls nothing: to use it is an error, and never "absent".
            return Dynamic::from(MissingFunction);
        };
        pointer.set_curry(self.captures.iter().map(|value| value.thaw(closures)));
        pointer.into()
    }
}

/// Stands for a function that could not be found again. Scripts can do nothing with it.
#[derive(Debug, Clone, Copy)]
struct MissingFunction;

fn freeze(value: &Dynamic, depth: usize) -> Result<Frozen, String> {
    if depth > MAX_DEPTH {
        return Err(format!("values nested deeper than {MAX_DEPTH}"));
    }
    // Many items may be the same text, of which each gets a copy.
    if is_out_of_memory() {
        return Err("more than there is memory for".to_owned());
    }
    if value.is_unit() {
        return Ok(Frozen::Unit);
    }
    if let Ok(value) = value.as_bool() {
        return Ok(Frozen::Bool(value));
    }
    if let Ok(value) = value.as_int() {
        return Ok(Frozen::Int(value));
    }
    if let Ok(value) = value.as_float() {
        return Ok(Frozen::Float(value));
    }
    if let Ok(value) = value.as_char() {
        return Ok(Frozen::Char(value));
    }
    if let Ok(value) = value.as_immutable_string_ref() {
        return Ok(Frozen::Text(value.as_str().into()));
    }
    if let Ok(value) = value.as_blob_ref() {
        return Ok(Frozen::Blob(value.as_slice().into()));
    }
    if let Ok(items) = value.as_array_ref() {
        let items = items.iter().map(|item| freeze(item, depth + 1));
        return items.collect::<Result<_, _>>().map(Frozen::Array);
    }
    if let Ok(entries) = value.as_map_ref() {
        let entries = entries
            .iter()
            .map(|(key, value)| Ok((key.to_string(), freeze(value, depth + 1)?)));
        return entries.collect::<Result<_, String>>().map(Frozen::Map);
    }
    if let Some(table) = value.read_lock::<Local<Table>>() {
        return Ok(Frozen::Table(Table::clone(&table)));
    }
    if let Some(cidr) = value.read_lock::<Local<Cidr>>() {
        return Ok(Frozen::Cidr(Cidr::clone(&cidr)));
    }
    if let Some(regex) = value.read_lock::<Local<Regex>>() {
        return Ok(Frozen::Regex(Regex::clone(&regex)));
    }
    if let Some(secret) = value.read_lock::<Local<Secret>>() {
        return Ok(Frozen::Secret(Secret::clone(&secret)));
    }
    if let Some(users) = value.read_lock::<Local<Htpasswd>>() {
        return Ok(Frozen::Htpasswd(Htpasswd::clone(&users)));
    }
    if let Some(set) = value.read_lock::<Local<Jwks>>() {
        return Ok(Frozen::Jwks(Jwks::clone(&set)));
    }
    if let Some(answer) = value.read_lock::<ScriptAnswer>() {
        return Ok(Frozen::Answer(ScriptAnswer::answer(&answer).clone()));
    }
    if let Some(rate) = value.read_lock::<Local<Rate>>() {
        return Ok(Frozen::State(State::Rate(Rate::clone(&rate))));
    }
    if let Some(counter) = value.read_lock::<Local<Counter>>() {
        return Ok(Frozen::State(State::Counter(Counter::clone(&counter))));
    }
    if let Some(cache) = value.read_lock::<Local<Cache>>() {
        return Ok(Frozen::State(State::Cache(Cache::clone(&cache))));
    }
    if let Some(slots) = value.read_lock::<Local<Concurrency>>() {
        return Ok(Frozen::State(State::Concurrency(Concurrency::clone(
            &slots,
        ))));
    }
    if let Some(pointer) = value.read_lock::<FnPtr>() {
        let captures = pointer.iter_curry().map(|item| freeze(item, depth + 1));
        return Ok(Frozen::Function(Function {
            name: pointer.fn_name().to_owned(),
            captures: captures.collect::<Result<_, _>>()?,
        }));
    }
    Err(described(value))
}

/// For messages: "a value of type `Route`".
pub(crate) fn described(value: &Dynamic) -> String {
    // The natives' types are called after what they are: `..::RouteHandle` is a route.
    let name = value.type_name();
    let name = name.rsplit("::").next().unwrap_or(name);
    format!("a value of type `{}`", name.trim_end_matches("Handle"))
}

impl From<serde_json::Value> for Frozen {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Unit,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .or_else(|| number.as_f64().map(Self::Float))
                .unwrap_or(Self::Unit),
            Value::String(text) => Self::Text(text.into()),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => Self::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| (key, Self::from(value)))
                    .collect(),
            ),
        }
    }
}
