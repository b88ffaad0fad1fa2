//! Rules that can be left out, by name.

use quorate_sim::mutants::{ALL, Mutant};
use std::str::FromStr;

/// Value of the option `--mutant`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MutantName {
    /// List of the names.
    List,
    /// A rule to leave out.
    One(Mutant),
}

/// Every name, as `--mutant` takes it.
pub(super) fn names() -> Vec<String> {
    ALL.iter().map(|mutant| format!("{mutant:?}")).collect()
}

impl FromStr for MutantName {
    type Err = String;

    /// Takes `ChainedDoubleVote` and `chained-double-vote` alike.
    fn from_str(name: &str) -> Result<Self, String> {
        let plain = |text: &str| text.replace('-', "").to_lowercase();
        if name == "list" {
            return Ok(Self::List);
        }
        let found = ALL.into_iter().find(|mutant| plain(&format!("{mutant:?}")) == plain(name));
        found.map(Self::One).ok_or_else(|| format!("no rule is called so; {}", suggestion(name)))
    }
}

fn suggestion(name: &str) -> String {
    let start = name.to_lowercase().chars().take(4).collect::<String>();
    let alike: Vec<_> =
        names().into_iter().filter(|other| other.to_lowercase().starts_with(&start)).collect();
    if alike.is_empty() {
        "`--mutant list` prints them all".to_owned()
    } else {
        format!("there are {}", alike.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::{MutantName, names};

    #[test]
    fn every_name_is_understood_in_both_forms() {
        for name in names() {
            let MutantName::One(mutant) = name.parse().expect("a listed name") else {
                panic!("{name} is a rule")
            };
            assert_eq!(format!("{mutant:?}"), name);
        }
        assert!("chained-double-vote".parse::<MutantName>().is_ok());
        let refused = "ChainedSingleVote".parse::<MutantName>().expect_err("no such rule");
        assert!(refused.contains("ChainedDoubleVote"), "{refused}");
    }
}
