//! The quota of a namespace, as the flag of the controller and the annotation of the Namespace have it.

use std::fmt;
use std::str::FromStr;

use super::quantity;

/// The limits of a namespace. `None`: there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The maximum number of objects.
    pub objects: Option<usize>,
    /// The maximum size of the records in bytes.
    pub record_bytes: Option<u64>,
    /// The maximum number of creates, updates and replacements that start in a minute.
    pub steps_per_minute: Option<u32>,
}

impl Quota {
    /// The quota of a controller whose flag sets no other limits. The flag shows it.
    pub const DEFAULT: Self =
        Self { objects: Some(50_000), record_bytes: Some(256 << 20), steps_per_minute: Some(12_000) };

    /// Takes the limits that this quota does not set from another one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            objects: self.objects.or(other.objects),
            record_bytes: self.record_bytes.or(other.record_bytes),
            steps_per_minute: self.steps_per_minute.or(other.steps_per_minute),
        }
    }
}

impl fmt::Display for Quota {
    /// Writes the limits in the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.objects.map(|objects| format!("objects={objects}"));
        let size = self.record_bytes.map(|bytes| match bytes % (1 << 20) {
            0 => format!("record-bytes={}Mi", bytes >> 20),
            _ => format!("record-bytes={bytes}"),
        });
        let steps = self.steps_per_minute.map(|steps| format!("steps-per-minute={steps}"));
        let limits: Vec<String> = [objects, size, steps].into_iter().flatten().collect();
        f.write_str(&limits.join(","))
    }
}

/// The error of a text that is not a quota.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a limit (write `objects=100`, `record-bytes=64Mi` or `steps-per-minute=600`, separated by commas)"
)]
pub struct InvalidQuota(String);

impl FromStr for Quota {
    type Err = InvalidQuota;

    /// Parses limits such as `objects=100,record-bytes=64Mi`. A limit of 0 allows nothing new, as in a ResourceQuota.
    /// `steps-per-minute` cannot be 0: a change of an object that exists would never start.
    fn from_str(text: &str) -> Result<Self, InvalidQuota> {
        let mut quota = Self::default();
        for limit in text.split(',').map(str::trim).filter(|limit| !limit.is_empty()) {
            let invalid = || InvalidQuota(limit.to_owned());
            match limit.split_once('=').ok_or_else(invalid)? {
                ("objects", number) => quota.objects = Some(number.parse().map_err(|_| invalid())?),
                ("record-bytes", size) => quota.record_bytes = Some(quantity(size).ok_or_else(invalid)?),
                ("steps-per-minute", number) => {
                    let steps = number.parse().ok().filter(|steps| *steps > 0);
                    quota.steps_per_minute = Some(steps.ok_or_else(invalid)?);
                }
                _ => return Err(invalid()),
            }
        }
        Ok(quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_sets_some_limits() {
        let quota: Quota = "objects=10, record-bytes=1Ki".parse().unwrap();
        assert_eq!(quota, Quota { objects: Some(10), record_bytes: Some(1024), steps_per_minute: None });
        let whole = quota.or(Quota::DEFAULT);
        assert_eq!((whole.objects, whole.steps_per_minute), (Some(10), Quota::DEFAULT.steps_per_minute));
        assert_eq!("".parse(), Ok(Quota::default()));
        assert_eq!(
            "objects=0".parse::<Quota>().unwrap().or(Quota::DEFAULT).objects,
            Some(0),
            "no object, not no limit"
        );
        for quota in [quota, Quota::DEFAULT, Quota::default()] {
            assert_eq!(quota.to_string().parse(), Ok(quota));
        }
    }

    #[test]
    fn a_limit_that_is_not_valid_is_named() {
        for limit in ["objects", "objects=-1", "steps-per-minute=0", "record-bytes=many", "pods=3"] {
            let error = format!("objects=1,{limit}").parse::<Quota>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{limit}` is not a limit")), "{error}");
        }
    }
}
