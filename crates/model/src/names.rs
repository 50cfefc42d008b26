//! Names as types. All of them are text, and a call has several of them side by side: as plain strings, two of them could be
//! swapped and it would compile. None of them converts into another.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Defines a type whose values are text of one kind. It is stored, compared and displayed like its text, so that maps can be
/// searched with a `&str`.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text, where it is a value or goes to code that knows no such names.
            pub fn text(&self) -> &Arc<str> {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&**self, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&**self, f)
            }
        }
    };
}

name! {
    /// The name of a namespace of Kubernetes. On files, the namespace in the files.
    Namespace
}

name! {
    /// The type of an object, such as `aws_vpc`.
    TypeName
}

name! {
    /// The UID of an object of Kubernetes. On files, and where no object is known, it is empty.
    Uid
}

name! {
    /// The name of a Resource, as its manifest says it (`metadata.name`), of a DataSource, with `data.` before it, or of a Module,
    /// with `/` after it. A family has one name for all of its instances, and a Module for all of its objects: the address of each
    /// is an [`Address`](super::Address).
    ///
    /// The names of other things that users write (a `ProviderConfig`, a Plan) are not of this type.
    Name
}
