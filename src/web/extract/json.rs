//! A JSON body, read strictly: no duplicate key, no number that is not exact, no unknown field. What is wrong
//! is named by its path; the value is never repeated.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::body::{API_LIMIT, Presence, announced_length, read_body};
use crate::domain::Invalid;
use crate::web::problem::Problem;

/// A JSON body of the API.
pub struct Json<T> {
    /// What it says.
    pub value: T,
    /// SHA-256 over its canonical form (RFC 8785).
    pub fingerprint: [u8; 32],
    /// Whether the caller still waits for the answer.
    pub caller: Presence,
}

impl<T: DeserializeOwned> FromRequest for Json<T> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let announced = announced_length(request);
        let mut payload = payload.take();
        Box::pin(async move {
            let (value, fingerprint) = parse(&read_body(&mut payload, announced, API_LIMIT).await?)?;
            Ok(Self { value, fingerprint, caller: Presence(payload) })
        })
    }
}

/// Reads a body: what it says, and its fingerprint.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<(T, [u8; 32]), Problem> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Problem::malformed("body".to_owned(), "is empty; it must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let Strict(value) = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = path(error.path());
        let message = error.into_inner().to_string();
        let problem = STRICT_PROBLEMS.iter().find(|problem| message.starts_with(**problem));
        match problem {
            Some(problem) => Invalid::new(field, *problem).into(),
            None if message.starts_with("recursion limit") => {
                Invalid::new(field, "is nested too deeply").into()
            }
            None => Problem::malformed(field, "is where the body stops being valid JSON in UTF-8"),
        }
    })?;
    reader
        .end()
        .map_err(|_| Problem::malformed("body".to_owned(), "goes on after the JSON object has ended"))?;
    if !value.is_object() {
        return Err(Problem::malformed("body".to_owned(), "must be a JSON object"));
    }
    let canonical = crate::domain::operation::canonical_json(&value)
        .map_err(|error| Invalid::new("body", error.to_string()))?;
    let fingerprint = crate::domain::binding::sha256(&canonical);
    let value = serde_path_to_error::deserialize(value)
        .map_err(|error| complaint(&path(error.path()), &error.inner().to_string()))?;
    Ok((value, fingerprint))
}

const DUPLICATE: &str = "has the same key twice";
const INEXACT: &str = "is a number beyond 2^53, which not every program reads alike; send it as a string";
const STRICT_PROBLEMS: [&str; 2] = [DUPLICATE, INEXACT];
/// The greatest whole number that every JSON implementation reads exactly (RFC 7493 §2.2).
const EXACT: u64 = (1 << 53) - 1;
const LONGEST_PATH: usize = 120;

fn path(path: &serde_path_to_error::Path) -> String {
    let text = path.to_string();
    let text = text.trim_end_matches(".?");
    if text.is_empty() || text == "." || text == "?" {
        return "body".to_owned();
    }
    shown(text)
}

/// A name from the body, safe to show: it may be anything.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(LONGEST_PATH).collect()
}

/// Turns the deserializer's message into one that repeats no value: only our own words after the last
/// "expected" are kept, and the names of fields.
fn complaint(path: &str, message: &str) -> Invalid {
    let inside = |name: &str| {
        let name = shown(name);
        match path {
            "body" => name,
            path if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
            path => format!("{path}.{name}"),
        }
    };
    let quoted = |prefix: &str| message.strip_prefix(prefix)?.split('`').nth(1);
    if let Some(name) = quoted("unknown field ") {
        return Invalid::new(inside(name), "is not a known field");
    }
    if let Some(name) = quoted("missing field ") {
        return Invalid::new(inside(name), "is required");
    }
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if message.starts_with("unknown variant") => {
            Invalid::new(path, format!("must be {expected}"))
        }
        Some((_, expected)) => Invalid::new(path, format!("must be {}", in_json_words(expected))),
        None => Invalid::new(path, "is not valid"),
    }
}

/// The deserializer speaks of Rust's types.
fn in_json_words(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative".to_owned(),
        "a map" => "an object".to_owned(),
        "a sequence" => "an array".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other if other.starts_with("enum ") => "one of its known words".to_owned(),
        other => other.to_owned(),
    }
}

/// Any JSON value without duplicate keys and inexact numbers.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > EXACT { Err(E::custom(INEXACT)) } else { Ok(value.into()) }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > EXACT { Err(E::custom(INEXACT)) } else { Ok(value.into()) }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // A whole number too long for 64 bits arrives here as well.
        if value.abs() > 9_007_199_254_740_991.0 {
            return Err(E::custom(INEXACT));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom(INEXACT))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(DUPLICATE));
            }
            let Strict(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
