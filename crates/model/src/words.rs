//! What users call the settings of an object: in its manifest, or in its Terraform configuration.

use super::{Address, DriverError, InstanceKey, Path, Segment};

/// The words of the language in which an object is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    Manifest,
    Terraform,
}

/// A setting of `lifecycle` that is true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    PreventDestroy,
    CreateBeforeDestroy,
}

impl Words {
    pub fn of(address: &Address) -> Self {
        if address.is_qualified() { Self::Terraform } else { Self::Manifest }
    }

    /// What contains the configuration of one object.
    pub fn source(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Terraform => "block",
        }
    }

    /// What an object belongs to.
    pub fn owner(self) -> &'static str {
        match self {
            Self::Manifest => "Resource",
            Self::Terraform => "block",
        }
    }

    pub fn setting(self, setting: Lifecycle) -> &'static str {
        match (self, setting) {
            (Self::Manifest, Lifecycle::PreventDestroy) => "preventDestroy",
            (Self::Manifest, Lifecycle::CreateBeforeDestroy) => "createBeforeDestroy",
            (Self::Terraform, Lifecycle::PreventDestroy) => "prevent_destroy",
            (Self::Terraform, Lifecycle::CreateBeforeDestroy) => "create_before_destroy",
        }
    }

    /// A setting with what it is in.
    pub fn field(self, setting: Lifecycle) -> String {
        match self {
            Self::Manifest => format!("`spec.lifecycle.{}`", self.setting(setting)),
            Self::Terraform => format!("`{}`", self.setting(setting)),
        }
    }

    /// A setting with its value, as it is written.
    pub fn with(self, setting: Lifecycle, value: bool) -> String {
        let name = self.setting(setting);
        match self {
            Self::Manifest => format!("`spec.lifecycle.{name}: {value}`"),
            Self::Terraform => format!("`lifecycle {{ {name} = {value} }}`"),
        }
    }

    /// What keeps an object that is no longer configured.
    pub fn keeps(self) -> &'static str {
        match self {
            Self::Manifest => "`deletionPolicy: Orphan`",
            Self::Terraform => "`lifecycle { destroy = false }`",
        }
    }

    /// What destroys an object that is no longer configured.
    pub fn destroys(self) -> &'static str {
        match self {
            Self::Manifest => "`deletionPolicy: Delete`",
            Self::Terraform => "`lifecycle { destroy = true }`",
        }
    }

    /// What imports an object. `field`: what it is named by.
    pub fn import(self, field: &str) -> String {
        match self {
            Self::Manifest => format!("`spec.import.{field}`"),
            Self::Terraform => format!("`{field}` of its `import` block"),
        }
    }

    /// What moves an object to another address.
    pub fn moved(from: &Address, to: &Address) -> String {
        match (Self::of(to), &to.key) {
            (Self::Terraform, _) => format!("a `moved` block from `{from}` to `{to}`"),
            (Self::Manifest, InstanceKey::None | InstanceKey::All) => {
                format!("`spec.moved: [{{ from: '{from}' }}]` in `{}`", to.stem)
            }
            (Self::Manifest, key) => format!("`spec.moved: [{{ from: '{from}', to: '{key}' }}]` in `{}`", to.stem),
        }
    }

    /// The error of a driver with its attribute as the language names it: a path of an error is one below `spec.config`.
    pub fn error(self, mut error: DriverError) -> DriverError {
        if let Some(path) = error.path.take_if(|_| self == Self::Terraform) {
            error.message = format!("{path}: {}", error.message);
        }
        error
    }

    /// The place of a problem in the configuration of an object. `None`: the language has no such field.
    pub fn place(self, path: &Path) -> Option<Path> {
        let name = |at: usize| match path.0.get(at) {
            Some(Segment::Name(name)) => Some(&**name),
            _ => None,
        };
        match self {
            Self::Manifest => Some(path.clone()),
            Self::Terraform if name(0) != Some("spec") => Some(path.clone()),
            Self::Terraform => match name(1) {
                Some("config") => Some(Path(path.0[2..].to_vec())),
                // The variables of a Module are in its manifest.
                Some("variables") => Some(path.clone()),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_a_configuration_has_the_words_of_terraform() {
        let [manifest, block] = ["web", "module.a.t.web"].map(|text| Words::of(&text.parse().unwrap()));
        let setting = Lifecycle::CreateBeforeDestroy;
        assert_eq!(manifest.with(setting, true), "`spec.lifecycle.createBeforeDestroy: true`");
        assert_eq!(block.with(setting, true), "`lifecycle { create_before_destroy = true }`");
        let moved = |from: &str, to: &str| Words::moved(&from.parse().unwrap(), &to.parse().unwrap());
        assert_eq!(moved("a", "b[1]"), "`spec.moved: [{ from: 'a', to: '[1]' }]` in `b`");
        assert_eq!(moved("t.a", "t.b[1]"), "a `moved` block from `t.a` to `t.b[1]`");
    }

    #[test]
    fn a_problem_of_a_configuration_has_the_path_below_its_block() {
        let place = |words: Words, path: &str| words.place(&path.parse().unwrap()).map(|path| path.to_string());
        assert_eq!(place(Words::Manifest, "spec.config.a[0]").as_deref(), Some("spec.config.a[0]"));
        assert_eq!(place(Words::Terraform, "spec.config.a[0]").as_deref(), Some("a[0]"));
        assert_eq!(place(Words::Terraform, "spec.import"), None);
    }
}
