//! The kind `secret`: which values are asked for, and which answers are accepted.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::Invalid;
use super::text::{Shape, is_unseen, plain};

/// The form to fill in: one to ten fields with different names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretRequest {
    fields: Vec<Field>,
}

/// One value to enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Names the value in the credential and in the form: a letter, then letters, digits, `_`, `-` or `.`.
    pub name: String,
    /// What the person reads beside the input.
    pub label: String,
    /// A hint below the label: where to find the value, for example.
    pub help: Option<String>,
    /// How it is entered.
    pub format: Format,
    /// Whether it may not be left out.
    pub required: bool,
    /// Fewest characters.
    pub min_length: usize,
    /// Most characters.
    pub max_length: usize,
    /// A regular expression that the whole value must match.
    pub pattern: Option<String>,
}

/// How a value is entered and shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One line, hidden while typing, never sent back to the browser.
    #[default]
    Password,
    /// One line, visible.
    Text,
    /// Several lines, visible: a private key, for example.
    Multiline,
}

/// Largest `maxLength`, in characters.
pub const LONGEST_VALUE: usize = 32_768;
const DEFAULT_LONGEST_VALUE: usize = 4_096;
const MOST_FIELDS: usize = 10;
const NAME: Shape = Shape { longest: 64, lines: false };
const LABEL: Shape = Shape { longest: 100, lines: false };
const HELP: Shape = Shape { longest: 400, lines: true };
const LONGEST_PATTERN: usize = 512;
const PATTERN_MEMORY: usize = 1 << 20;

/// A [`Field`] as a caller describes it, not yet checked. What is absent takes its default.
#[expect(missing_docs, reason = "the fields are described where they are checked")]
#[derive(Debug, Clone, Default)]
pub struct FieldSpec {
    pub name: String,
    pub label: String,
    pub help: Option<String>,
    pub format: Format,
    pub required: Option<bool>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<String>,
}

impl SecretRequest {
    /// Checks the description of a form.
    ///
    /// # Errors
    /// [`Invalid`] with the path of the field that cannot be accepted.
    pub fn new(specs: Vec<FieldSpec>) -> Result<Self, Invalid> {
        if specs.is_empty() || specs.len() > MOST_FIELDS {
            return Err(Invalid::new("secret.fields", format!("must list 1 to {MOST_FIELDS} fields")));
        }
        let mut fields: Vec<Field> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.into_iter().enumerate() {
            let path = format!("secret.fields[{index}]");
            let field = Field::new(&path, spec)?;
            if fields.iter().any(|other| other.name == field.name) {
                return Err(Invalid::new(format!("{path}.name"), "is used by another field"));
            }
            fields.push(field);
        }
        Ok(Self { fields })
    }

    /// The fields, in the order in which they are shown.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Checks what the person entered; `entered` gives the value for a field's name.
    ///
    /// # Errors
    /// Every field that cannot be accepted, with the reason; never the value.
    pub fn accept<'a>(&self, entered: impl Fn(&str) -> Option<&'a str>) -> Result<Accepted, Vec<FieldError>> {
        let mut values = Vec::new();
        let mut trimmed = Vec::new();
        let mut errors = Vec::new();
        for field in &self.fields {
            match field.accept(entered(&field.name).unwrap_or_default()) {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    if entry.trimmed {
                        trimmed.push(field.name.clone());
                    }
                    values.push((field.name.clone(), entry.value));
                }
                Err(problem) => errors.push(FieldError { field: field.name.clone(), problem }),
            }
        }
        if errors.is_empty() { Ok(Accepted { values: SecretValues(values), trimmed }) } else { Err(errors) }
    }
}

/// What the person entered, checked.
#[derive(Debug)]
pub struct Accepted {
    /// The values.
    pub values: SecretValues,
    /// Names of the fields whose values lost surrounding white space.
    pub trimmed: Vec<String>,
}

/// Secret values by field name. Wiped from memory when dropped; `Debug` shows no value.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValues(Vec<(String, Zeroizing<String>)>);

impl SecretValues {
    /// Name and value, in the order of the form.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The credential as the API releases it: `{"values": {name: value}}`.
    #[must_use]
    pub const fn credential(&self) -> Credential<'_> {
        Credential { values: ByName(self) }
    }
}

/// Secret values as the API releases them.
#[derive(Serialize)]
pub struct Credential<'a> {
    values: ByName<'a>,
}

struct ByName<'a>(&'a SecretValues);

impl Serialize for ByName<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

impl FromIterator<(String, Zeroizing<String>)> for SecretValues {
    fn from_iter<I: IntoIterator<Item = (String, Zeroizing<String>)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// A field that was not filled in as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's name.
    pub field: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with an entered value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Nothing was entered.
    Missing,
    /// Fewer than so many characters.
    TooShort(usize),
    /// More than so many characters.
    TooLong(usize),
    /// Characters that cannot be typed, such as a line break where there is one line.
    ControlCharacter,
    /// It does not look like what is asked for.
    Pattern,
}

struct Entry {
    value: Zeroizing<String>,
    trimmed: bool,
}

impl Field {
    fn new(path: &str, spec: FieldSpec) -> Result<Self, Invalid> {
        let at = |part: &str| format!("{path}.{part}");
        let name = plain(&at("name"), &spec.name, NAME)?;
        let mut characters = name.chars();
        let starts_well = characters.next().is_some_and(|c| c.is_ascii_alphabetic());
        if !starts_well || !characters.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
            return Err(Invalid::new(
                at("name"),
                "must be a letter followed by letters, digits, '_', '-' or '.'",
            ));
        }
        let max_length = length(&at("maxLength"), spec.max_length, DEFAULT_LONGEST_VALUE)?;
        if max_length == 0 {
            return Err(Invalid::new(at("maxLength"), "must be at least 1"));
        }
        let min_length = length(&at("minLength"), spec.min_length, 0)?;
        if min_length > max_length {
            return Err(Invalid::new(at("minLength"), "must not be greater than maxLength"));
        }
        if let Some(pattern) = &spec.pattern {
            checked_pattern(pattern).ok_or_else(|| {
                Invalid::new(
                    at("pattern"),
                    format!("must be a regular expression of at most {LONGEST_PATTERN} characters, without look-around or back-references"),
                )
            })?;
        }
        Ok(Self {
            name,
            label: plain(&at("label"), &spec.label, LABEL)?,
            help: spec.help.map(|help| plain(&at("help"), &help, HELP)).transpose()?,
            format: spec.format,
            required: spec.required.unwrap_or(true),
            min_length,
            max_length,
            pattern: spec.pattern,
        })
    }

    fn accept(&self, entered: &str) -> Result<Option<Entry>, Problem> {
        let value = match self.format {
            Format::Multiline => with_line_feeds(entered),
            Format::Password | Format::Text => {
                let around = |c: char| c.is_whitespace() || is_unseen(c);
                Zeroizing::new(entered.trim_matches(around).to_owned())
            }
        };
        let trimmed = self.format != Format::Multiline && value.len() != entered.len();
        if value.trim().is_empty() {
            return if self.required { Err(Problem::Missing) } else { Ok(None) };
        }
        // Key files are often indented with tabs.
        let lays_out = |c| self.format == Format::Multiline && matches!(c, '\n' | '\t');
        if value.chars().any(|c| c.is_control() && !lays_out(c)) {
            return Err(Problem::ControlCharacter);
        }
        let characters = value.chars().count();
        if characters < self.min_length {
            return Err(Problem::TooShort(self.min_length));
        }
        if characters > self.max_length {
            return Err(Problem::TooLong(self.max_length));
        }
        if let Some(pattern) = &self.pattern
            && !whole_match(pattern).is_some_and(|regex| regex.is_match(&value))
        {
            return Err(Problem::Pattern);
        }
        Ok(Some(Entry { value, trimmed }))
    }
}

fn length(field: &str, given: Option<u64>, default: usize) -> Result<usize, Invalid> {
    let Some(given) = given else { return Ok(default) };
    usize::try_from(given)
        .ok()
        .filter(|&length| length <= LONGEST_VALUE)
        .ok_or_else(|| Invalid::new(field, format!("must be at most {LONGEST_VALUE}")))
}

/// The value with line feeds as its only line breaks, in one buffer that is wiped.
fn with_line_feeds(entered: &str) -> Zeroizing<String> {
    let mut value = Zeroizing::new(String::with_capacity(entered.len()));
    for (index, line) in entered.split("\r\n").enumerate() {
        if index > 0 {
            value.push('\n');
        }
        value.push_str(line);
    }
    value
}

/// A pattern as a caller gave it: also valid alone, so that no stray bracket can break out of the group around it.
fn checked_pattern(pattern: &str) -> Option<Regex> {
    if pattern.chars().count() > LONGEST_PATTERN {
        return None;
    }
    build(pattern)?;
    whole_match(pattern)
}

/// The expression, anchored at both ends.
fn whole_match(pattern: &str) -> Option<Regex> {
    build(&format!("^(?:{pattern})$"))
}

/// In an engine whose time is linear in the value.
fn build(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_MEMORY).build().ok()
}
