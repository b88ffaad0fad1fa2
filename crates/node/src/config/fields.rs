//! Meaning of every field of a validator's files: the one place where it is written down.
//!
//! The template that `quorate testnet` and `quorate config template` write, docs/CONFIG.md and the
//! hints of `quorate config check` are made from these tables. Tests compare them with the structs
//! that are read, and the ranges with what [`super::NodeConfig::validate`] accepts, so that a field
//! without a line here, or a line without a field, fails.

mod committee;
mod node;

pub use committee::{AGREED, COMMITTEE, is_agreed};
pub use node::{CONFIG, local_section};

/// One section of a file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Name between brackets; empty for the fields above all sections.
    pub name: &'static str,
    /// Subject of the section, for its heading.
    pub title: &'static str,
    /// Explanation of the section as a whole; for one that may be absent altogether, and not empty
    /// only then.
    pub optional: &'static str,
    /// Fields in the order in which they are written.
    pub fields: &'static [Field],
}

/// One field of a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the file.
    pub name: &'static str,
    /// Kind of the value, with its range.
    pub kind: Kind,
    /// Value that holds when it is left out.
    pub default: FieldDefault,
    /// Meaning, and the consequences of changing it.
    pub meaning: &'static str,
    /// Set of a setting for comparisons with papers, which validators refuse.
    pub for_comparisons: bool,
}

/// Kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The path of a file or folder; a relative one is meant from the folder of the file.
    Path,
    /// An `address:port` to listen on or connect to.
    Address,
    /// Any text, as a string.
    Text,
    /// Hexadecimal digits, as a string.
    Hex,
    /// Either `true` or `false`.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A whole number in a range.
    Number {
        /// Unit that is counted.
        unit: &'static str,
        /// Smallest value that is accepted.
        min: u64,
        /// The largest; [`NO_BOUND`] where there is none.
        max: u64,
        /// Dependence on another field; empty when there is none.
        rule: &'static str,
    },
    /// A list of sections.
    List,
    /// A list of identity keys.
    Keys,
}

/// The largest number that a file can hold.
pub const NO_BOUND: u64 = i64::MAX as u64;

/// Value that holds when a field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldDefault {
    /// No value: the field must be there.
    Required,
    /// Value of the struct's own default.
    OfStruct,
    /// This value, in words.
    Words(&'static str),
}

impl Field {
    /// Unit, range and default in one line, such as `milliseconds, 10 to 600000; default 1000`.
    /// `of_struct` is the struct's own default.
    #[must_use]
    pub fn facts(&self, of_struct: Option<&toml::Value>) -> String {
        let kind = self.kind.to_string();
        match (self.default, of_struct) {
            (FieldDefault::Required, _) => format!("{kind}; required"),
            (FieldDefault::Words(words), _) => format!("{kind}; default: {words}"),
            (FieldDefault::OfStruct, Some(value)) => format!("{kind}; default {value}"),
            (FieldDefault::OfStruct, None) => format!("{kind}; default: none"),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path => f.write_str("path"),
            Self::Address => f.write_str("address:port"),
            Self::Text => f.write_str("text"),
            Self::Hex => f.write_str("hexadecimal digits"),
            Self::Flag => f.write_str("true or false"),
            Self::List => f.write_str("list"),
            Self::Keys => f.write_str("list of identity keys, 64 hexadecimal digits each"),
            Self::Choice(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                f.write_str(&quoted.join(", "))
            }
            Self::Number { unit, min, max, rule } => {
                match *max {
                    NO_BOUND => write!(f, "{unit}, at least {min}")?,
                    max => write!(f, "{unit}, {min} to {max}")?,
                }
                if rule.is_empty() { Ok(()) } else { write!(f, ", {rule}") }
            }
        }
    }
}

const fn field(
    name: &'static str,
    kind: Kind,
    default: FieldDefault,
    meaning: &'static str,
) -> Field {
    Field { name, kind, default, meaning, for_comparisons: false }
}

/// A field that exists for comparisons with papers alone.
const fn for_comparisons(field: Field) -> Field {
    Field { for_comparisons: true, ..field }
}

/// A number with the struct's default.
const fn number(
    name: &'static str,
    unit: &'static str,
    (min, max): (u64, u64),
    meaning: &'static str,
) -> Field {
    field(name, Kind::Number { unit, min, max, rule: "" }, FieldDefault::OfStruct, meaning)
}

/// A number whose range depends on another field.
const fn bound_number(
    name: &'static str,
    unit: &'static str,
    (min, max): (u64, u64),
    rule: &'static str,
    meaning: &'static str,
) -> Field {
    field(name, Kind::Number { unit, min, max, rule }, FieldDefault::OfStruct, meaning)
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    meaning: &'static str,
) -> Field {
    field(name, Kind::Choice(words), FieldDefault::OfStruct, meaning)
}

const fn flag(name: &'static str, meaning: &'static str) -> Field {
    field(name, Kind::Flag, FieldDefault::OfStruct, meaning)
}
