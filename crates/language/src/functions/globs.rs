//! Patterns of file names.

use globset::{GlobBuilder, GlobMatcher};

/// `*` and `?` stay within a part of a path, `**` does not; `{a,b}` and `[abc]` are alternatives.
pub(super) fn compile(pattern: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().ok()?;
    Some(glob.compile_matcher())
}
