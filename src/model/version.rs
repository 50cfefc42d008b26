//! Which versions of a provider will do, as Terraform writes it: `~> 3.1`, `>= 1.0, < 2.0`, `!= 1.4.2`, `3.6.0`.

use std::fmt;
use std::str::FromStr;

use semver::{Prerelease, Version};

/// A list of conditions that a version must fulfil, all of them. The empty list takes every release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionConstraint {
    conditions: Vec<Condition>,
}

/// Why a constraint cannot be read, in words that follow its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{condition}` is no condition on a version")]
pub struct InvalidConstraint {
    condition: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    operator: Operator,
    version: Version,
    /// How many of its numbers were written: `~>` looks at it.
    numbers: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Compatible,
}

impl Operator {
    /// Longer ones first, so that `>=` is not read as `>`.
    const WRITTEN: [(&'static str, Self); 7] = [
        ("~>", Self::Compatible),
        (">=", Self::GreaterOrEqual),
        ("<=", Self::LessOrEqual),
        ("!=", Self::NotEqual),
        (">", Self::Greater),
        ("<", Self::Less),
        ("=", Self::Equal),
    ];
}

impl VersionConstraint {
    /// How to write one.
    pub const HINT: &str = "write it as in Terraform: `3.6.0`, `~> 3.6`, `>= 3.6, < 4.0`";

    /// Whether a version will do. A prerelease does only when it is named exactly, as in Terraform.
    pub fn allows(&self, version: &Version) -> bool {
        let named = || self.conditions.iter().any(|condition| condition.names(version));
        (version.pre.is_empty() || named()) && self.conditions.iter().all(|condition| condition.allows(version))
    }

    /// The only version that will do, when one is named exactly.
    pub fn exact(&self) -> Option<&Version> {
        let mut exact = self.conditions.iter().filter(|condition| condition.operator == Operator::Equal);
        exact.next().map(|condition| &condition.version).filter(|version| self.allows(version))
    }
}

impl Condition {
    fn names(&self, version: &Version) -> bool {
        self.operator == Operator::Equal && self.version.cmp_precedence(version).is_eq()
    }

    fn allows(&self, version: &Version) -> bool {
        // What follows `+` says how it was built and orders nothing.
        let order = version.cmp_precedence(&self.version);
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            // Only the last of the numbers that were written may grow; of a single one everything below it.
            Operator::Compatible => {
                order.is_ge()
                    && version.major == self.version.major
                    && (self.numbers < 3 || version.minor == self.version.minor)
            }
        }
    }
}

impl FromStr for VersionConstraint {
    type Err = InvalidConstraint;

    fn from_str(text: &str) -> Result<Self, InvalidConstraint> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let conditions = text
            .split(',')
            .map(str::trim)
            .map(|part| condition(part).ok_or_else(|| InvalidConstraint { condition: part.to_owned() }));
        Ok(Self { conditions: conditions.collect::<Result<_, _>>()? })
    }
}

fn condition(text: &str) -> Option<Condition> {
    let found = Operator::WRITTEN.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)));
    let (operator, version) = found.unwrap_or((Operator::Equal, text));
    let version = version.trim();
    let (numbers, rest) = version.find(['-', '+']).map_or((version, ""), |at| version.split_at(at));
    let written = numbers.split('.').count();
    let whole = match written {
        1 => format!("{numbers}.0.0{rest}"),
        2 => format!("{numbers}.0{rest}"),
        _ => version.to_owned(),
    };
    let version = Version::parse(&whole).ok()?;
    // Which prereleases a shortened version would mean is nowhere said.
    (written == 3 || version.pre == Prerelease::EMPTY).then_some(Condition { operator, version, numbers: written })
}

impl fmt::Display for VersionConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, condition) in self.conditions.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let sign = Operator::WRITTEN.iter().find(|(_, operator)| *operator == condition.operator);
            let sign = sign.map(|(sign, _)| *sign).filter(|sign| *sign != "=");
            let version = &condition.version;
            write!(f, "{separator}{}", sign.map(|sign| format!("{sign} ")).unwrap_or_default())?;
            match (condition.numbers, condition.operator) {
                (1, Operator::Compatible) => write!(f, "{}", version.major)?,
                (2, Operator::Compatible) => write!(f, "{}.{}", version.major, version.minor)?,
                _ => write!(f, "{version}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(constraint: &str, versions: &str) -> String {
        let constraint: VersionConstraint = constraint.parse().unwrap();
        let fits = |version: &&str| constraint.allows(&Version::parse(version).unwrap());
        versions.split(' ').filter(fits).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn conditions_mean_what_they_mean_in_terraform() {
        let versions = "1.0.0 1.1.0 1.1.9 1.2.0 2.0.0 2.1.0-beta1 2.1.0";
        for (constraint, expected) in [
            ("", "1.0.0 1.1.0 1.1.9 1.2.0 2.0.0 2.1.0"),
            ("1.1", "1.1.0"),
            ("= 1.1.9", "1.1.9"),
            ("~> 1", "1.0.0 1.1.0 1.1.9 1.2.0"),
            ("~> 1.1", "1.1.0 1.1.9 1.2.0"),
            ("~> 1.1.0", "1.1.0 1.1.9"),
            (">= 1.1, < 2.0.0", "1.1.0 1.1.9 1.2.0"),
            ("> 1.2.0,<=2.1", "2.0.0 2.1.0"),
            ("!= 1.1.0, < 1.2", "1.0.0 1.1.9"),
            (">= 2.1.0-beta1", "2.1.0"),
            ("2.1.0-beta1", "2.1.0-beta1"),
            ("2.1.0-beta1, < 2.0.0", ""),
        ] {
            assert_eq!(allowed(constraint, versions), expected, "{constraint}");
        }
    }

    #[test]
    fn what_was_built_otherwise_is_the_same_version() {
        assert_eq!(allowed("1.0.0", "1.0.0+a"), "1.0.0+a");
    }

    #[test]
    fn one_version_is_found_without_a_list() {
        let exact = |text: &str| text.parse::<VersionConstraint>().unwrap().exact().map(ToString::to_string);
        assert_eq!(exact("3.6"), Some("3.6.0".to_owned()));
        assert_eq!(exact("3.6.0, >= 4"), None);
        assert_eq!(exact(">= 3.6.0"), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = ">= 1.0, ~ 2".parse::<VersionConstraint>().unwrap_err();
        assert_eq!(error.to_string(), "`~ 2` is no condition on a version");
        for wrong in [",", ">=", "v1.0.0", "1.x", "1.2.3.4", "latest", "1.2-beta", "1.0.0,", "=> 1", "-1"] {
            assert!(wrong.parse::<VersionConstraint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_constraint_is_written_in_one_way() {
        for (written, normal) in [("~>1", "~> 1"), ("=1.0", "1.0.0"), (">=1.2 , !=1.3", ">= 1.2.0, != 1.3.0"), ("", "")]
        {
            assert_eq!(written.parse::<VersionConstraint>().unwrap().to_string(), normal);
        }
    }
}
