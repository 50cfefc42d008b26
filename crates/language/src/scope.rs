//! What functions may see of the world.

use crate::Budget;

/// What a function may read and may not know.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub files: &'a dyn Files,
    pub budget: &'a Budget,
    /// The time of the plan, in RFC 3339. Unknown without.
    pub plan_time: Option<&'a str>,
    /// Without effects, the results of `timestamp`, `uuid` and `bcrypt` are unknown, as while planning.
    pub effects: Option<&'a dyn Effects>,
    /// How many templates are around the expression.
    pub template_depth: usize,
}

/// The files of a module.
pub trait Files {
    /// The content of a file. Relative paths begin at the module.
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError>;

    /// The regular files at and below a directory, relative to it, with `/` between names.
    fn list(&self, directory: &str) -> Result<Vec<String>, FileError>;

    /// An absolute path for `path`, which need not exist.
    fn absolute(&self, path: &str) -> String;

    /// The home directory that `~` stands for.
    fn home(&self) -> Option<String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    Missing,
    Directory,
    /// The path leads out of the module.
    Outside,
    TooLarge,
    Unreadable,
}

/// What has another result each time.
pub trait Effects {
    /// The time, in RFC 3339 and UTC.
    fn now(&self) -> String;

    fn uuid(&self) -> String;

    /// Sixteen random bytes.
    fn salt(&self) -> [u8; 16];
}

/// No file at all.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Vec<u8>, FileError> {
        Err(FileError::Missing)
    }

    fn list(&self, _: &str) -> Result<Vec<String>, FileError> {
        Err(FileError::Missing)
    }

    fn absolute(&self, path: &str) -> String {
        format!("/{path}")
    }

    fn home(&self) -> Option<String> {
        None
    }
}
