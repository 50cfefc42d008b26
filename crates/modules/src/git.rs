//! Packages that are Git repositories, by the program `git`: it knows the credentials of the user.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fetch::display_url;
use process::command::{self, Command, Exit};
use reqwest::Url;

use crate::error::ModuleError;

/// The time limit of each command, as for packages of providers.
const TIMEOUT: Duration = Duration::from_mins(30);

/// Other schemes run programs, or are not known to `git`.
const SCHEMES: [&str; 5] = ["https", "ssh", "http", "git", "file"];

/// Variables that would make `git` work on the repository around a hook that runs Purlin.
const OF_A_REPOSITORY: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"];

/// The program.
#[derive(Clone, Debug)]
pub struct Git {
    /// What runs programs so that they end with this process: see [`Command::launcher`].
    pub launcher: Option<PathBuf>,
}

/// What to clone, without anything that `git` could take for an option.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    url: String,
    /// A branch, a tag or a commit.
    reference: Option<String>,
    /// The number of commits of the history.
    depth: Option<u32>,
}

impl Git {
    /// Clones a repository with its submodules into a directory that does not exist yet. The parameters `ref` and `depth` of
    /// the URL choose the commit.
    pub async fn clone(&self, url: &Url, into: &Path) -> Result<(), ModuleError> {
        let wanted = Wanted::of(url)?;
        let directory = into.parent().unwrap_or(into);
        let target = into.display().to_string();
        let depth = wanted.depth.map(|depth| depth.to_string());
        let mut arguments = vec!["clone", "--quiet"];
        if let Some(depth) = &depth {
            arguments.extend(["--depth", depth]);
            arguments.extend(wanted.reference.as_deref().into_iter().flat_map(|name| ["--branch", name]));
        } else if wanted.reference.is_some() {
            arguments.push("--no-checkout");
        }
        arguments.extend(["--", &wanted.url, &target]);
        self.run(&arguments, directory, url).await?;
        if let (Some(name), None) = (&wanted.reference, wanted.depth) {
            self.run(&["checkout", "--quiet", name, "--"], into, url).await?;
        }
        if into.join(".gitmodules").exists() {
            let mut arguments = vec!["submodule", "--quiet", "update", "--init", "--recursive"];
            arguments.extend(depth.as_deref().into_iter().flat_map(|depth| ["--depth", depth]));
            self.run(&arguments, into, url).await?;
        }
        Ok(())
    }

    async fn run(&self, arguments: &[&str], directory: &Path, url: &Url) -> Result<(), ModuleError> {
        let command = Command {
            program: "git".to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: environment().into_iter().map(|(name, value)| (name.into(), value)).collect(),
            directory: directory.to_owned(),
            timeout: TIMEOUT,
            launcher: self.launcher.clone(),
        };
        let outcome = command::run(&command).await.map_err(|error| {
            failure(url, &format!("the program `git` cannot be started: {error}")).hint("install Git, and check PATH")
        })?;
        match outcome.exit {
            Exit::Exited(status) if status.success() => Ok(()),
            Exit::Exited(_) => {
                let why = reason(&outcome.output);
                let error = failure(url, &why);
                Err(match hint(&why) {
                    Some(hint) => error.hint(hint),
                    None => error,
                })
            }
            Exit::TimedOut => Err(failure(url, &format!("`git {}` took longer than 30 minutes", arguments[0]))),
        }
    }
}

/// The program cannot ask: it runs in the background, where a question on the terminal would stop it.
fn environment() -> Vec<(&'static str, Option<String>)> {
    let mut environment: Vec<_> = OF_A_REPOSITORY.iter().map(|&name| (name, None)).collect();
    environment.push(("GIT_TERMINAL_PROMPT", Some("0".to_owned())));
    environment.push(("LC_ALL", Some("C".to_owned())));
    if std::env::var_os("SSH_ASKPASS").is_none() {
        environment.push(("SSH_ASKPASS", Some("false".to_owned())));
        environment.push(("SSH_ASKPASS_REQUIRE", Some("force".to_owned())));
    }
    environment
}

impl Wanted {
    fn of(url: &Url) -> Result<Self, ModuleError> {
        if !SCHEMES.contains(&url.scheme()) {
            let message = format!("`{}` is not a scheme of a Git repository", url.scheme());
            return Err(ModuleError::new(message).hint("use https, ssh, http, git or file"));
        }
        // A host that begins with a dash would be an option of ssh.
        if url.host_str().unwrap_or_default().starts_with('-') || url.username().starts_with('-') {
            return Err(ModuleError::new(format!("{} is not the URL of a repository", display_url(url))));
        }
        let (mut reference, mut depth, mut rest) = (None, None, Vec::new());
        for (name, value) in url.query_pairs() {
            match &*name {
                "ref" => reference = Some(checked_reference(&value)?),
                "depth" => depth = Some(checked_depth(&value)?),
                "sshkey" => {
                    let message = "the parameter `sshkey` of a Git repository is not supported";
                    return Err(ModuleError::new(message).hint("add the key to ssh-agent, or set GIT_SSH_COMMAND"));
                }
                // They are for archives.
                "archive" | "checksum" => {}
                _ => rest.push((name.into_owned(), value.into_owned())),
            }
        }
        let mut url = url.clone();
        url.set_query(None);
        if !rest.is_empty() {
            url.query_pairs_mut().extend_pairs(rest);
        }
        Ok(Self { url: url.to_string(), reference, depth: depth.filter(|depth| *depth > 0) })
    }
}

fn checked_reference(name: &str) -> Result<String, ModuleError> {
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_control) {
        return Err(ModuleError::new(format!("`{name}` is not a reference of a Git repository"))
            .hint("write a branch, a tag or a commit: `?ref=v1.2.0`"));
    }
    Ok(name.to_owned())
}

fn checked_depth(text: &str) -> Result<u32, ModuleError> {
    text.parse().map_err(|_| ModuleError::new(format!("`{text}` is not a depth")).hint("write a number: `?depth=1`"))
}

fn failure(url: &Url, why: &str) -> ModuleError {
    ModuleError::new(format!("{} cannot be cloned: {why}", display_url(url)))
}

/// The line of the output that says why.
fn reason(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // What ssh says stands before the conclusion of `git`.
    let of_ssh = lines.iter().find(|line| line.contains("Permission denied") || line.contains("verification failed"));
    let of_git = lines.iter().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    let line = of_ssh.or(of_git).or(lines.last()).copied().unwrap_or("it gave no reason");
    line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned()
}

fn hint(why: &str) -> Option<&'static str> {
    const DENIED: [&str; 4] =
        ["could not read Username", "Permission denied", "Authentication failed", "verification failed"];
    if DENIED.iter().any(|text| why.contains(text)) {
        return Some("clone it once by hand: Purlin uses the credentials that Git has, and cannot ask for others");
    }
    if ["invalid reference", "pathspec", "Remote branch"].iter().any(|text| why.contains(text)) {
        return Some("correct `ref`; with `depth`, it has to be a branch or a tag");
    }
    let is_missing = ["does not exist", "not found", "does not appear to be"].iter().any(|text| why.contains(text));
    is_missing.then_some("correct the address in `source`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(url: &str) -> Result<Wanted, String> {
        Wanted::of(&Url::parse(url).unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn parameters_choose_the_commit() {
        let found = wanted("ssh://git@example.com/network.git?ref=v1.0&depth=1&x=y").unwrap();
        let url = "ssh://git@example.com/network.git?x=y".to_owned();
        assert_eq!(found, Wanted { url, reference: Some("v1.0".to_owned()), depth: Some(1) });
        assert_eq!(wanted("https://example.com/a.git?depth=0").unwrap().depth, None);
    }

    #[test]
    fn nothing_can_be_an_option_or_run_a_program() {
        for (url, expected) in [
            (
                "https://example.com/a.git?ref=--upload-pack=x",
                "`--upload-pack=x` is not a reference of a Git repository",
            ),
            ("https://example.com/a.git?ref=", "`` is not a reference of a Git repository"),
            ("https://example.com/a.git?depth=-1", "`-1` is not a depth"),
            ("ext::sh", "`ext` is not a scheme of a Git repository"),
            ("ssh://-oProxyCommand=x/a.git", "ssh:/"),
            ("ssh://-oProxyCommand@example.com/a.git", "ssh://example.com/a.git is not the URL of a repository"),
            ("https://example.com/a.git?sshkey=x", "the parameter `sshkey` of a Git repository is not supported"),
        ] {
            match Url::parse(url) {
                Ok(_) => assert!(wanted(url).unwrap_err().starts_with(expected), "{url}"),
                // The parser of URLs refuses the host.
                Err(_) => assert_eq!(expected, "ssh:/", "{url}"),
            }
        }
    }

    #[test]
    fn the_reason_is_one_line() {
        let output = "Cloning into 'x'...\nfatal: repository 'y' not found\n";
        assert_eq!(reason(output), "repository 'y' not found");
        assert_eq!(hint(&reason(output)), Some("correct the address in `source`"));
        let ssh = "git@example.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n";
        assert_eq!(reason(ssh), "git@example.com: Permission denied (publickey).");
        assert_eq!(reason(""), "it gave no reason");
    }
}
