//! One installation: which version, from where, checked against what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use semver::Version;

use super::address::Source;
use super::archive::{self, Bounds};
use super::cache::{Cached, Draft, Slot};
use super::http::Ask;
use super::origin::filesystem::FilesystemMirror;
use super::origin::network::NetworkMirror;
use super::origin::oci::OciMirror;
use super::origin::registry::Registry;
use super::origin::{Found, Origin, Place};
use super::{Hash, InstallError, Installed, Installer, Locked, Platform};
use crate::model::{Package, Provider, VersionConstraint};
use crate::process::SystemClock;

/// How many versions an error names.
const NAMED: usize = 5;

/// One installation.
#[derive(Debug)]
pub(super) struct Job<'a> {
    installer: &'a Installer,
    provider: &'a Provider,
    source: Source,
    constraint: VersionConstraint,
    pins: Vec<Hash>,
    /// Only when its version still fits.
    locked: Option<&'a Locked>,
    platform: Platform,
}

impl<'a> Job<'a> {
    /// Reads what the provider says.
    pub fn new(
        installer: &'a Installer,
        provider: &'a Provider,
        locked: Option<&'a Locked>,
        platform: Platform,
    ) -> Result<Self, InstallError> {
        let constraint: VersionConstraint = provider.version.parse().map_err(|error| {
            InstallError::terminal(format!("{error}")).at("spec.version").hint(VersionConstraint::HINT)
        })?;
        let pins = provider.checksums.iter().map(|text| text.parse()).collect::<Result<_, String>>();
        let locked = locked.filter(|locked| constraint.allows(&locked.version));
        Ok(Self {
            installer,
            provider,
            source: Source::parse(&provider.source)?,
            constraint,
            pins: pins.map_err(|error| InstallError::terminal(error).at("spec.checksums"))?,
            locked,
            platform,
        })
    }

    /// Installs.
    pub async fn run(&self) -> Result<Installed, InstallError> {
        if let Some(installed) = self.searched().await? {
            return Ok(installed);
        }
        let origin = match &self.provider.package {
            Package::Path(path) => return self.in_place(path.as_ref().into(), None, None, path.as_ref()).await,
            Package::FilesystemMirror(root) => Origin::Filesystem(self.mirror(Path::new(&**root))),
            Package::NetworkMirror(address) => {
                let Installer { http, credentials, .. } = self.installer;
                Origin::Network(NetworkMirror::new(address, &self.source, &self.platform, http, credentials)?)
            }
            Package::OciMirror(template) => {
                let Installer { http, credentials, .. } = self.installer;
                Origin::Oci(OciMirror::new(template, &self.source, &self.platform, http, credentials)?)
            }
            Package::Registry => {
                let Installer { http, credentials, .. } = self.installer;
                let (source, platform) = (&self.source, &self.platform);
                Origin::Registry(Registry { source, platform, http, credentials, clock: &SystemClock })
            }
        };
        if origin.is_remote()
            && let Some(version) = self.locked.map(|locked| &locked.version).or(self.constraint.exact())
            && let Some(installed) = self.cached(version).await?
        {
            return Ok(installed);
        }
        let versions = origin.versions().await?;
        let version = self.choose(&versions).ok_or_else(|| self.nothing_fits(&origin.to_string(), versions))?;
        if origin.is_remote()
            && let Some(installed) = self.cached(&version).await?
        {
            return Ok(installed);
        }
        let found = origin.locate(&version).await?;
        self.take(found, &origin.to_string()).await
    }

    /// From the first of the search folders that has a version that fits.
    async fn searched(&self) -> Result<Option<Installed>, InstallError> {
        for dir in &self.installer.plugin_dirs {
            let mirror = self.mirror(dir);
            let versions = mirror.versions().map_err(|error| InstallError {
                hint: Some("correct --plugin-dir or PURLIN_PLUGIN_DIR".to_owned()),
                ..error
            })?;
            if let Some(version) = self.choose(&versions) {
                let found = mirror.locate(&version)?;
                return self.take(found, &Origin::Filesystem(mirror).to_string()).await.map(Some);
            }
        }
        Ok(None)
    }

    fn mirror<'b>(&'b self, root: &'b Path) -> FilesystemMirror<'b> {
        FilesystemMirror { root, source: &self.source, platform: &self.platform }
    }

    /// The locked version when it is there, else the newest that fits.
    fn choose(&self, versions: &[Version]) -> Option<Version> {
        let fitting = || versions.iter().filter(|version| self.constraint.allows(version));
        let locked = fitting().find(|version| self.locked.is_some_and(|locked| locked.version == **version));
        locked.or_else(|| fitting().max_by(|a, b| a.cmp_precedence(b))).cloned()
    }

    fn nothing_fits(&self, origin: &str, mut versions: Vec<Version>) -> InstallError {
        let Self { source, platform, constraint, .. } = self;
        if versions.is_empty() {
            return InstallError::transient(format!("{origin} has no package of {source} for {platform}"))
                .at("spec.source")
                .hint("correct it, or name another origin with `spec.package`");
        }
        versions.sort_by(|a, b| b.cmp_precedence(a));
        let more = if versions.len() > NAMED { ", ..." } else { "" };
        let there: Vec<String> = versions.iter().take(NAMED).map(ToString::to_string).collect();
        let there = there.join(", ");
        if constraint.to_string().is_empty() {
            return InstallError::transient(format!("{origin} has only prereleases of {source}: {there}{more}"))
                .at("spec.version")
                .hint("a prerelease is taken only when `spec.version` names it exactly");
        }
        InstallError::transient(format!("{origin} has no version of {source} that fits `{constraint}`"))
            .at("spec.version")
            .hint(format!("available: {there}{more}"))
    }

    fn slot(&self, version: &Version) -> Slot {
        self.installer.cache.slot(&self.source, version, &self.platform)
    }

    /// A version from the cache, when it is there and something vouches for it.
    async fn cached(&self, version: &Version) -> Result<Option<Installed>, InstallError> {
        let slot = self.slot(version);
        let cached = blocking(move || slot.read()).await?;
        let vouched = |cached: &Cached| {
            let vouching = self.vouching(version).any(|hashes| !hashes.is_empty());
            (cached.checked || vouching) && self.check(version, &cached.hashes).is_ok()
        };
        let Some(cached) = cached.filter(vouched) else { return Ok(None) };
        let origin = cached.folder.display().to_string();
        let program = archive::program(&cached.folder, &self.source.name)?;
        Ok(Some(self.installed(Some(version.clone()), program, cached.hashes, &origin)))
    }

    /// What vouches for a version beside its origin: the lock and the pins.
    fn vouching(&self, version: &Version) -> impl Iterator<Item = Vec<Hash>> {
        let locked = self.locked.filter(|locked| locked.version == *version);
        let locked = locked.map(|locked| locked.hashes.iter().cloned().collect()).unwrap_or_default();
        [locked, self.pins.clone()].into_iter()
    }

    /// Whether a package is the one that is locked and pinned.
    fn check(&self, version: &Version, hashes: &[Hash]) -> Result<(), InstallError> {
        let is_of = |known: &[Hash]| known.is_empty() || known.iter().any(|hash| hashes.contains(hash));
        let mut vouching = self.vouching(version);
        let (locked, pins) = (vouching.next().unwrap_or_default(), vouching.next().unwrap_or_default());
        let package = || format!("the package of {} {version} for {}", self.source, self.platform);
        let is = texts(hashes);
        if !is_of(&pins) {
            return Err(InstallError::terminal(format!("{} is not the one that is pinned: it is {is}", package()))
                .at("spec.checksums")
                .hint("compare with a copy you trust, then correct the checksums"));
        }
        if !is_of(&locked) {
            return Err(InstallError::terminal(format!("{} is not one that is locked: it is {is}", package()))
                .hint("compare it with a copy you trust; `purlin provider lock` accepts it"));
        }
        Ok(())
    }

    /// Takes the package that an origin has.
    async fn take(&self, found: Found, origin: &str) -> Result<Installed, InstallError> {
        match &found.place {
            Place::Folder(folder) => {
                let folder = folder.clone();
                self.in_place(folder, Some(found.version.clone()), Some(&found), origin).await
            }
            Place::Zip(_) | Place::Download { .. } => self.unpacked(found, origin).await,
        }
    }

    /// An unpacked package or a program, used where it is.
    async fn in_place(
        &self,
        path: PathBuf,
        version: Option<Version>,
        found: Option<&Found>,
        origin: &str,
    ) -> Result<Installed, InstallError> {
        let program = archive::program(&path, &self.source.name).map_err(|error| match found {
            None => error.at("spec.package.path"),
            Some(_) => error,
        })?;
        let read = path.clone();
        let hash = blocking(move || Hash::of_files(&read).map_err(|error| InstallError::file(&read, error))).await?;
        let hashes = vec![hash];
        match &version {
            Some(version) => self.check(version, &hashes)?,
            // A program without a version is in no lock.
            None => {
                let pinned = self.pins.is_empty() || self.pins.iter().any(|pin| hashes.contains(pin));
                if !pinned {
                    let message = format!("{} is not what is pinned: it is {}", path.display(), texts(&hashes));
                    let hint = "what is used in place has a checksum `h1:` and no `zh:`";
                    return Err(InstallError::terminal(message).at("spec.checksums").hint(hint));
                }
            }
        }
        if !archive::is_executable(&program) {
            let message = format!("{} is not executable", program.display());
            return Err(InstallError::terminal(message).at("spec.package").hint("chmod +x it"));
        }
        Ok(self.installed(version, program, hashes, origin))
    }

    /// A zip, unpacked into the cache unless it is there already.
    async fn unpacked(&self, found: Found, origin: &str) -> Result<Installed, InstallError> {
        let slot = self.slot(&found.version);
        let turn = slot.turn().await?;
        // Who waited for somebody who made this package is done.
        if let Some(there) = self.made(&slot, &found).await? {
            return Ok(Installed { origin: origin.to_owned(), ..with_told(there, found) });
        }
        let draft = slot.draft("zip");
        let (zip, digest) = self.zip(&found, &draft).await?;
        let bounds = Bounds::default();
        let at = slot.clone();
        let there = blocking(move || at.read()).await?.filter(|there| there.hashes.contains(&digest));
        let (folder, hashes) = match there {
            Some(there) => {
                self.expected(&found, &there.hashes)?;
                self.check(&found.version, &there.hashes)?;
                (there.folder, there.hashes)
            }
            None => {
                let into = slot.draft("new");
                let (path, name) = (into.path().to_owned(), self.source.name.clone());
                let files = blocking(move || {
                    std::fs::create_dir(&path).map_err(|error| InstallError::file(&path, error))?;
                    archive::unpack(&zip, &path, bounds)?;
                    let program = archive::program(&path, &name).map_err(|error| InstallError {
                        message: format!("the package holds no program `terraform-provider-{name}`"),
                        ..error
                    })?;
                    archive::make_executable(&program)?;
                    Hash::of_files(&path).map_err(|error| InstallError::file(&path, error))
                });
                let files = files.await?;
                let hashes = vec![files.clone(), digest.clone()];
                self.expected(&found, &hashes)?;
                self.check(&found.version, &hashes)?;
                (slot.keep(&into, &files, &digest, &turn)?, hashes)
            }
        };
        let program = archive::program(&folder, &self.source.name)?;
        let installed = self.installed(Some(found.version.clone()), program, hashes, origin);
        Ok(with_told(installed, found))
    }

    /// The package that the origin means, when it is in the cache.
    async fn made(&self, slot: &Slot, found: &Found) -> Result<Option<Installed>, InstallError> {
        let at = slot.clone();
        let there = blocking(move || at.read()).await?;
        let meant = |there: &Cached| there.checked && found.expected.iter().any(|hash| there.hashes.contains(hash));
        match there.filter(meant) {
            Some(_) => self.cached(&found.version).await,
            None => Ok(None),
        }
    }

    /// The zip of a package on this machine, and its checksum.
    async fn zip(&self, found: &Found, draft: &Draft) -> Result<(PathBuf, Hash), InstallError> {
        match &found.place {
            Place::Download { url, authorization, credentials } => {
                let what = format!("the package of {} {} for {}", self.source, found.version, self.platform);
                let authorization = authorization.as_deref();
                let ask = Ask { url, what: &what, authorization, credentials, accept: None };
                let digest = Hash::of_zip(self.installer.http.download(ask, draft.path()).await?);
                // What is not what it should be is not even opened.
                if found.expected.iter().any(|hash| !hash.is_of_files()) {
                    self.expected(found, std::slice::from_ref(&digest))?;
                }
                Ok((draft.path().to_owned(), digest))
            }
            Place::Zip(path) | Place::Folder(path) => {
                let read = path.clone();
                let hashed =
                    blocking(move || Hash::of_zip_file(&read).map_err(|error| InstallError::file(&read, error)));
                Ok((path.clone(), hashed.await?))
            }
        }
    }

    /// Whether a package is what its origin says.
    fn expected(&self, found: &Found, hashes: &[Hash]) -> Result<(), InstallError> {
        if found.expected.is_empty() || found.expected.iter().any(|hash| hashes.contains(hash)) {
            return Ok(());
        }
        let (expected, is) = (texts(&found.expected), texts(hashes));
        let package = format!("the package of {} {} for {}", self.source, found.version, self.platform);
        Err(InstallError::transient(format!("{package} does not match its checksum: it is {is}, not {expected}"))
            .hint("it was cut or changed on its way; nothing of it was kept"))
    }

    fn installed(
        &self,
        version: Option<Version>,
        program: PathBuf,
        hashes: impl IntoIterator<Item = Hash>,
        origin: &str,
    ) -> Installed {
        Installed {
            source: self.source.to_string(),
            version,
            platform: self.platform.clone(),
            origin: origin.to_owned(),
            program,
            hashes: hashes.into_iter().collect(),
            known: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }
}

/// With what its origin says beside the package.
fn with_told(installed: Installed, found: Found) -> Installed {
    Installed { known: found.known.into_iter().collect(), warnings: found.warnings, ..installed }
}

fn texts(hashes: &[Hash]) -> String {
    hashes.iter().map(Hash::as_str).collect::<Vec<_>>().join(" or ")
}

/// Does what waits for the disk on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(InstallError::transient("Purlin is about to end")),
        },
    }
}
