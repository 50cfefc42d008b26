//! Version constraints in Terraform's syntax: `~> 3.1`, `>= 1.0, < 2.0`, `!= 1.4.2`, `3.6.0`.
#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use semver::Prerelease;
pub use semver::Version;

/// Conditions that a version must all satisfy. The empty list allows every release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionConstraint {
    conditions: Vec<Condition>,
}

/// The error of a constraint that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{condition}` is not a valid version constraint")]
pub struct InvalidConstraint {
    condition: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    operator: Operator,
    version: Version,
    /// The number of version components that were given, which `~>` depends on.
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
    /// Longer symbols come first, so that `>=` is not parsed as `>`.
    const WRITTEN: [(&'static str, Self); 7] = [
        ("~>", Self::Compatible),
        (">=", Self::GreaterOrEqual),
        ("<=", Self::LessOrEqual),
        ("!=", Self::NotEqual),
        (">", Self::Greater),
        ("<", Self::Less),
        ("=", Self::Equal),
    ];

    /// The order of conditions on one version in lock files.
    const CANONICAL: [Self; 7] = [
        Self::Greater,
        Self::GreaterOrEqual,
        Self::Equal,
        Self::Compatible,
        Self::LessOrEqual,
        Self::Less,
        Self::NotEqual,
    ];
}

impl VersionConstraint {
    /// The hint for an invalid constraint.
    pub const HINT: &str = "write it as in Terraform: `3.6.0`, `~> 3.6`, `>= 3.6, < 4.0`";

    /// Reads the constraint of a module. For modules, upstream also accepts versions such as `v1.2.0`.
    ///
    /// # Errors
    /// The condition that is none.
    pub fn of_module(text: &str) -> Result<Self, InvalidConstraint> {
        Self::read(text, |version| version.strip_prefix('v').unwrap_or(version))
    }

    /// `bare` is a version without what may stand before it.
    fn read(text: &str, bare: fn(&str) -> &str) -> Result<Self, InvalidConstraint> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let conditions = text
            .split(',')
            .map(str::trim)
            .map(|part| condition(part, bare).ok_or_else(|| InvalidConstraint { condition: part.to_owned() }));
        Ok(Self { conditions: conditions.collect::<Result<_, _>>()? })
    }

    /// Whether a version satisfies all conditions. As in Terraform, a prerelease must be named exactly.
    pub fn allows(&self, version: &Version) -> bool {
        let named = || self.conditions.iter().any(|condition| condition.names(version));
        (version.pre.is_empty() || named()) && self.conditions.iter().all(|condition| condition.allows(version))
    }

    /// The conditions of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.conditions.extend(other.conditions.iter().cloned());
        self
    }

    /// The conditions in the form that upstream writes into lock files: each once, the lower versions first, and with the
    /// number of components that their meaning needs.
    #[must_use]
    pub fn canonical(mut self) -> Self {
        for condition in &mut self.conditions {
            condition.numbers = if condition.operator == Operator::Compatible && condition.numbers < 3 { 2 } else { 3 };
        }
        let order = |operator: Operator| Operator::CANONICAL.iter().position(|own| *own == operator);
        let rank = |condition: &Condition| (order(condition.operator), condition.numbers);
        self.conditions.sort_by(|a, b| a.version.cmp(&b.version).then_with(|| rank(a).cmp(&rank(b))));
        self.conditions.dedup();
        self
    }

    /// Returns the only allowed version, if the constraint names one exactly.
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
        // Build metadata after `+` is ignored.
        let order = version.cmp_precedence(&self.version);
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            // Only the last given component can increase; for a single component, all lower ones.
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
        Self::read(text, |version| version)
    }
}

fn condition(text: &str, bare: fn(&str) -> &str) -> Option<Condition> {
    let found = Operator::WRITTEN.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)));
    let (operator, version) = found.unwrap_or((Operator::Equal, text));
    let version = bare(version.trim());
    let (numbers, rest) = version.find(['-', '+']).map_or((version, ""), |at| version.split_at(at));
    let written = numbers.split('.').count();
    let whole = match written {
        1 => format!("{numbers}.0.0{rest}"),
        2 => format!("{numbers}.0{rest}"),
        _ => version.to_owned(),
    };
    let version = Version::parse(&whole).ok()?;
    // The meaning of a prerelease of an incomplete version is undefined.
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
    fn conditions_follow_terraform() {
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
    fn a_version_of_a_module_can_begin_with_v() {
        let exact = VersionConstraint::of_module("v1.2").unwrap();
        assert_eq!(exact.exact().map(ToString::to_string), Some("1.2.0".to_owned()));
        assert!(VersionConstraint::of_module(">= v1.0, < v2.0.0").is_ok());
        assert!(VersionConstraint::of_module("vv1.0").is_err());
    }

    #[test]
    fn build_metadata_is_ignored() {
        assert_eq!(allowed("1.0.0", "1.0.0+a"), "1.0.0+a");
    }

    #[test]
    fn an_exact_version_is_found() {
        let exact = |text: &str| text.parse::<VersionConstraint>().unwrap().exact().map(ToString::to_string);
        assert_eq!(exact("3.6"), Some("3.6.0".to_owned()));
        assert_eq!(exact("3.6.0, >= 4"), None);
        assert_eq!(exact(">= 3.6.0"), None);
    }

    #[test]
    fn the_error_names_the_invalid_condition() {
        let error = ">= 1.0, ~ 2".parse::<VersionConstraint>().unwrap_err();
        assert_eq!(error.to_string(), "`~ 2` is not a valid version constraint");
        for wrong in [",", ">=", "v1.0.0", "1.x", "1.2.3.4", "latest", "1.2-beta", "1.0.0,", "=> 1", "-1"] {
            assert!(wrong.parse::<VersionConstraint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn constraints_are_written_into_lock_files_as_upstream_does() {
        for (written, expected) in [
            (&["~> 3.1", ">= 3", ">= 3.0.0"][..], ">= 3.0.0, ~> 3.1"),
            (&["~> 2", "~> 2.0.0", "2.0"], "2.0.0, ~> 2.0, ~> 2.0.0"),
            (&["< 5, != 4.1", ">= 4.1, <= 4.1"], ">= 4.1.0, <= 4.1.0, != 4.1.0, < 5.0.0"),
            (&["", ""], ""),
        ] {
            let all = written.iter().map(|text| text.parse::<VersionConstraint>().unwrap());
            let merged = all.fold(VersionConstraint::default(), |merged, one| merged.and(&one));
            assert_eq!(merged.canonical().to_string(), expected);
        }
    }

    #[test]
    fn a_constraint_is_normalized() {
        for (written, normal) in [("~>1", "~> 1"), ("=1.0", "1.0.0"), (">=1.2 , !=1.3", ">= 1.2.0, != 1.3.0"), ("", "")]
        {
            assert_eq!(written.parse::<VersionConstraint>().unwrap().to_string(), normal);
        }
    }
}
