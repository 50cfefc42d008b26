//! What Purlin reads of the command line settings of Terraform and OpenTofu (`.tofurc`, `.terraformrc`, `credentials.tfrc.json`):
//! the tokens of registries, and the directories with providers. OpenTofu's page "CLI Configuration File" has the rules.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hcl::{Body, Content, Expr, ExprKind, FileId, Literal, Schema, Source};

use super::failure::Failure;
use tfprovider::install::{Credentials, InstallOptions};

/// The settings for all configurations of a user.
#[derive(Default)]
pub struct TerraformSettings {
    /// The token for each host.
    tokens: BTreeMap<String, String>,
    /// The directories with unpacked or packed providers (`filesystem_mirror`).
    mirrors: Vec<PathBuf>,
    /// What the files set that has no effect here, with its place.
    pub ignored: Vec<String>,
}

/// The settings of the user of this process.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn of_user() -> anyhow::Result<TerraformSettings> {
    read(&|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

/// Reads all files; the first one that has a token for a host counts.
fn read(variable: &dyn Fn(&str) -> Option<OsString>) -> anyhow::Result<TerraformSettings> {
    let mut settings = TerraformSettings::default();
    for path in files(variable) {
        // As in OpenTofu, a file that `TF_CLI_CONFIG_FILE` names and that does not exist is only a warning.
        if !path.exists() {
            settings.ignored.push(format!("{}: TF_CLI_CONFIG_FILE names it, but it does not exist", path.display()));
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error.to_string()))?;
        settings.add(&path, &text)?;
    }
    Ok(settings)
}

/// The files: the main one, and those of the folder that `tofu login` writes to.
fn files(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let home = variable("HOME").map(PathBuf::from);
    let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let xdg = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| in_home(".config"));
    let xdg = xdg.map(|folder| folder.join("opentofu"));
    let mut files = Vec::new();
    if let Some(given) = variable("TF_CLI_CONFIG_FILE").map(PathBuf::from) {
        files.push(given);
    } else {
        let in_xdg = xdg.as_ref().map(|folder| folder.join("tofurc"));
        let places = [in_home(".tofurc"), in_xdg, in_home(".terraformrc")];
        files.extend(places.into_iter().flatten().find(|path| path.is_file()));
    }
    for folder in [in_home(".terraform.d"), xdg].into_iter().flatten() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let name = Path::new(name.strip_suffix(".json").unwrap_or(name));
            name.extension().is_some_and(|extension| extension == "tfrc") && path.is_file()
        });
        paths.sort();
        files.extend(paths);
    }
    files
}

impl TerraformSettings {
    /// The tokens of the environment, and those of the files.
    pub fn credentials(&self) -> Credentials {
        Credentials::from_environment().with_tokens(self.tokens.clone())
    }

    /// The options of installations. `plugin_dirs`: the directories with providers of the command line; if empty, those of the
    /// environment.
    pub fn install_options(&self, plugin_dirs: &[PathBuf]) -> InstallOptions {
        let options = InstallOptions::from_environment();
        let given = if plugin_dirs.is_empty() { &options.plugin_dirs } else { plugin_dirs };
        let plugin_dirs = given.iter().chain(&self.mirrors).cloned().collect();
        InstallOptions { plugin_dirs, credentials: self.credentials(), ..options }
    }

    fn add(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let source = Source::new(FileId(0), path.display().to_string(), text);
        let parsed = if is_json { hcl::parse_json(source) } else { hcl::parse_body(source) };
        if let Some(problem) = parsed.diagnostics.first() {
            let line = parsed.source.position(problem.range.start).line;
            return Err(unreadable(path, &format!("line {line}: {}: {}", problem.summary, problem.detail)));
        }
        let blocks: &[(&str, &[&str])] =
            &[("credentials", &["host"]), ("credentials_helper", &["name"]), ("provider_installation", &[])];
        let (settings, _, _) = parsed.value.partial_content(&Schema::new(&[], blocks));
        for block in settings.blocks {
            match (block.kind.text.as_str(), block.labels.first()) {
                ("credentials", Some(host)) => {
                    let host = host.text.to_ascii_lowercase();
                    if let Some(token) = text_of(&arguments(block.body, &["token"]), "token") {
                        self.tokens.entry(host).or_insert(token);
                    }
                }
                ("provider_installation", _) => self.add_installation(path, block.body),
                (kind, _) => self.ignored.push(format!("{}: `{kind}` has no effect", path.display())),
            }
        }
        Ok(())
    }

    fn add_installation(&mut self, path: &Path, body: Body) {
        let methods: &[(&str, &[&str])] = &[
            ("filesystem_mirror", &[]),
            ("network_mirror", &[]),
            ("oci_mirror", &[]),
            ("direct", &[]),
            ("dev_overrides", &[]),
        ];
        let (installation, _, _) = body.partial_content(&Schema::new(&[], methods));
        for method in installation.blocks {
            match method.kind.text.as_str() {
                "filesystem_mirror" => {
                    let folder = text_of(&arguments(method.body, &["path"]), "path");
                    self.mirrors.extend(folder.map(PathBuf::from));
                }
                "direct" => {}
                kind => self.ignored.push(format!("{}: `{kind}` has no effect", path.display())),
            }
        }
    }
}

fn arguments(body: Body, names: &[&str]) -> Content {
    body.partial_content(&Schema::new(names, &[])).0
}

/// The text of an argument that is written out.
fn text_of(content: &Content, name: &str) -> Option<String> {
    literal(&content.attribute(name)?.value)
}

fn literal(expression: &Expr) -> Option<String> {
    match &expression.kind {
        ExprKind::Literal(Literal::String(text)) => Some(text.clone()),
        ExprKind::Template(parts) => parts.iter().map(literal).collect(),
        ExprKind::JsonString(string) => Some(string.text.clone()),
        _ => None,
    }
}

fn unreadable(path: &Path, why: &str) -> anyhow::Error {
    let hint = "correct the file, or select another one with TF_CLI_CONFIG_FILE";
    Failure::hinted(format!("cannot read the settings in {}: {why}", path.display()), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in(home: &Path, more: &[(&str, &str)]) -> anyhow::Result<TerraformSettings> {
        read(&|name| match name {
            "HOME" => Some(home.as_os_str().to_owned()),
            _ => more.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()),
        })
    }

    #[test]
    fn tokens_and_mirrors_are_read_from_all_files() {
        let home = tempfile::tempdir().unwrap();
        assert!(read_in(home.path(), &[]).unwrap().tokens.is_empty());
        let main = r#"
            plugin_cache_dir = "$HOME/.cache"
            credentials "App.Terraform.io" {
              token = "main"
            }
            provider_installation {
              filesystem_mirror {
                path    = "/srv/providers"
                include = ["example.com/*/*"]
              }
              network_mirror { url = "https://mirror.example.com/" }
              direct {}
            }
        "#;
        fs::write(home.path().join(".terraformrc"), main).unwrap();
        fs::create_dir(home.path().join(".terraform.d")).unwrap();
        let login = r#"{"credentials": {"app.terraform.io": {"token": "login"}, "my.example.com": {"token": "mine"}}}"#;
        fs::write(home.path().join(".terraform.d/credentials.tfrc.json"), login).unwrap();
        let settings = read_in(home.path(), &[]).unwrap();
        let token = |host: &str| settings.tokens.get(host).map(String::as_str);
        assert_eq!((token("app.terraform.io"), token("my.example.com")), (Some("main"), Some("mine")));
        assert_eq!(settings.mirrors, [PathBuf::from("/srv/providers")]);
        assert!(
            settings.ignored[0].ends_with(".terraformrc: `network_mirror` has no effect"),
            "{:?}",
            settings.ignored
        );
        // OpenTofu's own file comes first, and a named one replaces both.
        fs::write(home.path().join(".tofurc"), "credentials \"app.terraform.io\" {\n token = \"tofu\"\n}").unwrap();
        assert_eq!(read_in(home.path(), &[]).unwrap().tokens["app.terraform.io"], "tofu");
        let other = home.path().join("other.rc");
        let more = [("TF_CLI_CONFIG_FILE", other.to_str().unwrap())];
        assert!(read_in(home.path(), &more).unwrap().ignored[0].ends_with("but it does not exist"));
        fs::write(&other, "").unwrap();
        let settings = read_in(home.path(), &more).unwrap();
        assert_eq!((settings.tokens["app.terraform.io"].as_str(), settings.ignored.len()), ("login", 0));
    }

    #[test]
    fn a_file_with_an_error_says_where_it_is() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".tofurc"), "credentials \"a\" {\n  token = \n}\n").unwrap();
        let error = read_in(home.path(), &[]).err().unwrap().to_string();
        assert!(error.contains(".tofurc: line 2: "), "{error}");
    }
}
