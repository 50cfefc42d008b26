//! The files of the page. They are part of the program: nothing is built or loaded at run time.

/// A file of the page.
pub struct File {
    /// Its path below `/ui/`.
    pub path: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All files. The first is the page itself.
pub const FILES: &[File] = &[
    File { path: "", content_type: "text/html; charset=utf-8", text: include_str!("page/index.html") },
    File { path: "view.css", content_type: "text/css; charset=utf-8", text: include_str!("page/view.css") },
    File { path: "main.js", content_type: SCRIPT, text: include_str!("page/main.js") },
    File { path: "api.js", content_type: SCRIPT, text: include_str!("page/api.js") },
    File { path: "dom.js", content_type: SCRIPT, text: include_str!("page/dom.js") },
    File { path: "graph.js", content_type: SCRIPT, text: include_str!("page/graph.js") },
    File { path: "list.js", content_type: SCRIPT, text: include_str!("page/list.js") },
    File { path: "panel.js", content_type: SCRIPT, text: include_str!("page/panel.js") },
    File { path: "state.js", content_type: SCRIPT, text: include_str!("page/state.js") },
    File { path: "paint.js", content_type: SCRIPT, text: include_str!("page/paint.js") },
    File { path: "layout.js", content_type: SCRIPT, text: include_str!("page/layout.js") },
];

/// What the browser allows the page: its own files, and nothing else. No script in the HTML, no frame around the page.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; \
                          connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                          frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        const LARGEST: usize = 300 * 1024;
        let size: usize = FILES.iter().map(|file| file.text.len()).sum();
        assert!(size < LARGEST, "{size} bytes");
        for file in FILES {
            let urls: Vec<&str> =
                file.text.match_indices("://").map(|(at, _)| &file.text[at.saturating_sub(8)..at]).collect();
            assert!(urls.is_empty(), "{}: {urls:?}", file.path);
        }
        let html = FILES[0].text;
        assert!(!html.contains("<style") && !html.contains(" style=") && !html.contains(" onclick"));
        assert!(html.split("<script").skip(1).all(|script| script.starts_with(" type=\"module\" src=")));
    }
}
