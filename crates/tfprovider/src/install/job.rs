//! A single installation: selects the version and origin, and verifies the checksums.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fetch::{ArchiveFormat, HttpRequest, Links, UnpackRules};
use semver::Version;

use super::address::Source;
use super::cache::{CachedPackage, Slot, TempPath};
use super::origin::filesystem::FilesystemMirror;
use super::origin::network::NetworkMirror;
use super::origin::oci::OciMirror;
use super::origin::registry::Registry;
use super::origin::{LocatedPackage, Origin, PackageLocation};
use super::{
    Hash, InstallError, InstalledProvider, Installer, LockedProvider, Package, Platform, Requirement, program,
};
use process::SystemClock;
use version::VersionConstraint;

/// The largest providers unpack to less than 1 GiB and contain a handful of files.
const RULES: UnpackRules = UnpackRules { bytes: 4 << 30, entries: 10_000, links: Links::Refused };

/// The maximum number of versions that an error lists.
const MAX_LISTED_VERSIONS: usize = 5;

#[derive(Debug)]
pub(super) struct Job<'a> {
    installer: &'a Installer,
    provider: &'a Requirement,
    source: Source,
    constraint: VersionConstraint,
    pins: Vec<Hash>,
    /// Set only if its version satisfies the constraint.
    locked: Option<&'a LockedProvider>,
    platform: Platform,
}

impl<'a> Job<'a> {
    /// Parses the version constraint, address and checksums of the provider.
    pub fn new(
        installer: &'a Installer,
        provider: &'a Requirement,
        locked: Option<&'a LockedProvider>,
        platform: Platform,
    ) -> Result<Self, InstallError> {
        let constraint: VersionConstraint = provider
            .version
            .parse()
            .map_err(|error| InstallError::new(format!("{error}")).at("spec.version").hint(VersionConstraint::HINT))?;
        let pins = provider.checksums.iter().map(|text| text.parse()).collect::<Result<_, String>>();
        let locked = locked.filter(|locked| constraint.allows(&locked.version));
        Ok(Self {
            installer,
            provider,
            source: Source::parse(&provider.source)?,
            constraint,
            pins: pins.map_err(|error| InstallError::new(error).at("spec.checksums"))?,
            locked,
            platform,
        })
    }

    pub async fn run(&self) -> Result<InstalledProvider, InstallError> {
        if let Some(installed) = self.find_in_plugin_dirs().await? {
            return Ok(installed);
        }
        if let Some(installed) = self.find_installed().await {
            return Ok(installed);
        }
        let origin = match &self.provider.package {
            Package::Path(path) => return self.use_in_place(path.as_ref().into(), None, None, path.as_ref()).await,
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
        let version = self.choose(&versions).ok_or_else(|| self.no_matching_version(&origin.to_string(), versions))?;
        if origin.is_remote()
            && let Some(installed) = self.cached(&version).await?
        {
            return Ok(installed);
        }
        let found = origin.locate(&version).await?;
        self.install_from(found, &origin.to_string()).await
    }

    /// Installs from the first plugin directory with a matching version.
    async fn find_in_plugin_dirs(&self) -> Result<Option<InstalledProvider>, InstallError> {
        for dir in &self.installer.plugin_dirs {
            let mirror = self.mirror(dir);
            let versions = mirror.versions().map_err(|error| InstallError {
                hint: Some("correct --plugin-dir or PURLIN_PLUGIN_DIR".to_owned()),
                ..error
            })?;
            if let Some(version) = self.choose(&versions) {
                let found = mirror.locate(&version)?;
                return self.install_from(found, &Origin::Filesystem(mirror).to_string()).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Uses the locked version in place where another program has installed it. A package that is not the locked one is left
    /// alone: the origin has the right one.
    async fn find_installed(&self) -> Option<InstalledProvider> {
        let root = self.installer.installed.as_deref()?;
        let locked = self.locked.filter(|locked| !locked.hashes.is_empty())?;
        let found = self.mirror(root).locate(&locked.version).ok()?;
        let origin = root.display().to_string();
        self.install_from(found, &origin).await.ok()
    }

    fn mirror<'b>(&'b self, root: &'b Path) -> FilesystemMirror<'b> {
        FilesystemMirror { root, source: &self.source, platform: &self.platform }
    }

    /// Selects the locked version if it is available, or else the newest matching version.
    fn choose(&self, versions: &[Version]) -> Option<Version> {
        let fitting = || versions.iter().filter(|version| self.constraint.allows(version));
        let locked = fitting().find(|version| self.locked.is_some_and(|locked| locked.version == **version));
        locked.or_else(|| fitting().max_by(|a, b| a.cmp_precedence(b))).cloned()
    }

    fn no_matching_version(&self, origin: &str, mut versions: Vec<Version>) -> InstallError {
        let Self { source, platform, constraint, .. } = self;
        if versions.is_empty() {
            return InstallError::new(format!("{origin} has no package of {source} for {platform}"))
                .at("spec.source")
                .hint("correct `spec.source`, or set another origin in `spec.package`");
        }
        versions.sort_by(|a, b| b.cmp_precedence(a));
        let more = if versions.len() > MAX_LISTED_VERSIONS { ", ..." } else { "" };
        let available: Vec<String> = versions.iter().take(MAX_LISTED_VERSIONS).map(ToString::to_string).collect();
        let available = available.join(", ");
        if constraint.to_string().is_empty() {
            return InstallError::new(format!("{origin} has only prereleases of {source}: {available}{more}"))
                .at("spec.version")
                .hint("a prerelease is installed only if `spec.version` names it exactly");
        }
        InstallError::new(format!("{origin} has no version of {source} that matches `{constraint}`"))
            .at("spec.version")
            .hint(format!("available: {available}{more}"))
    }

    fn slot(&self, version: &Version) -> Slot {
        self.installer.cache.slot(&self.source, version, &self.platform)
    }

    /// Returns a version from the cache, if it exists and has a receipt or matches a locked or pinned checksum.
    async fn cached(&self, version: &Version) -> Result<Option<InstalledProvider>, InstallError> {
        let slot = self.slot(version);
        let cached = blocking(move || slot.read()).await?;
        let is_trusted = |cached: &CachedPackage| {
            let trusted = self.trusted_hashes(version).any(|hashes| !hashes.is_empty());
            (cached.checked || trusted) && self.check_lock_and_pins(version, &cached.hashes).is_ok()
        };
        let Some(cached) = cached.filter(is_trusted) else { return Ok(None) };
        let origin = cached.directory.display().to_string();
        let program = program::program(&cached.directory, &self.source.name)?;
        Ok(Some(self.installed(Some(version.clone()), program, cached.hashes, &origin)))
    }

    /// The locked and the pinned checksums of a version.
    fn trusted_hashes(&self, version: &Version) -> impl Iterator<Item = Vec<Hash>> {
        let locked = self.locked.filter(|locked| locked.version == *version);
        let locked = locked.map(|locked| locked.hashes.iter().cloned().collect()).unwrap_or_default();
        [locked, self.pins.clone()].into_iter()
    }

    /// Checks a package against the locked and pinned checksums.
    fn check_lock_and_pins(&self, version: &Version, hashes: &[Hash]) -> Result<(), InstallError> {
        let is_of = |known: &[Hash]| known.is_empty() || known.iter().any(|hash| hashes.contains(hash));
        let mut trusted = self.trusted_hashes(version);
        let (locked, pins) = (trusted.next().unwrap_or_default(), trusted.next().unwrap_or_default());
        let package = || format!("the package of {} {version} for {}", self.source, self.platform);
        let is = join_hashes(hashes);
        if !is_of(&pins) {
            return Err(InstallError::new(format!(
                "{} does not match the pinned checksums: its checksum is {is}",
                package()
            ))
            .at("spec.checksums")
            .hint("compare it with a trusted copy, then correct the checksums"));
        }
        if !is_of(&locked) {
            return Err(InstallError::new(format!(
                "{} does not match the locked checksums: its checksum is {is}",
                package()
            ))
            .hint("compare it with a trusted copy; `purlin provider lock` accepts it"));
        }
        Ok(())
    }

    /// Installs the package that was located at an origin.
    async fn install_from(&self, found: LocatedPackage, origin: &str) -> Result<InstalledProvider, InstallError> {
        match &found.location {
            PackageLocation::Directory(directory) => {
                let directory = directory.clone();
                self.use_in_place(directory, Some(found.version.clone()), Some(&found), origin).await
            }
            PackageLocation::Zip(_) | PackageLocation::Download { .. } => self.unpack(found, origin).await,
        }
    }

    /// Uses an unpacked package or a program in place.
    async fn use_in_place(
        &self,
        path: PathBuf,
        version: Option<Version>,
        found: Option<&LocatedPackage>,
        origin: &str,
    ) -> Result<InstalledProvider, InstallError> {
        let program = program::program(&path, &self.source.name).map_err(|error| match found {
            None => error.at("spec.package.path"),
            Some(_) => error,
        })?;
        let read = path.clone();
        let hash = blocking(move || Hash::of_files(&read).map_err(|error| InstallError::file(&read, error))).await?;
        let hashes = vec![hash];
        match &version {
            Some(version) => self.check_lock_and_pins(version, &hashes)?,
            // A program without a version is never locked.
            None => {
                let pinned = self.pins.is_empty() || self.pins.iter().any(|pin| hashes.contains(pin));
                if !pinned {
                    let message = format!(
                        "{} does not match the pinned checksums: its checksum is {}",
                        path.display(),
                        join_hashes(&hashes)
                    );
                    let hint = "a package that is used in place has an `h1:` checksum but no `zh:` checksum";
                    return Err(InstallError::new(message).at("spec.checksums").hint(hint));
                }
            }
        }
        if !program::is_executable(&program) {
            let message = format!("{} is not executable", program.display());
            return Err(InstallError::new(message).at("spec.package").hint("make it executable with `chmod +x`"));
        }
        Ok(self.installed(version, program, hashes, origin))
    }

    /// Unpacks a zip file into the cache, unless the package is cached already.
    async fn unpack(&self, found: LocatedPackage, origin: &str) -> Result<InstalledProvider, InstallError> {
        let slot = self.slot(&found.version);
        let package_lock = slot.lock().await?;
        // Another process may have stored the package while this one waited for the lock.
        if let Some(cached) = self.cached_if_expected(&slot, &found).await? {
            return Ok(InstalledProvider { origin: origin.to_owned(), ..with_origin_info(cached, found) });
        }
        let temp = slot.temp_path("zip");
        let (zip, digest) = self.zip(&found, &temp).await?;
        let at = slot.clone();
        let cached = blocking(move || at.read()).await?.filter(|cached| cached.hashes.contains(&digest));
        let (directory, hashes) = match cached {
            Some(cached) => {
                self.check_expected(&found, &cached.hashes)?;
                self.check_lock_and_pins(&found.version, &cached.hashes)?;
                (cached.directory, cached.hashes)
            }
            None => {
                let into = slot.temp_path("new");
                let (path, name) = (into.path().to_owned(), self.source.name.clone());
                let files = blocking(move || {
                    std::fs::create_dir(&path).map_err(|error| InstallError::file(&path, error))?;
                    fetch::unpack(&zip, ArchiveFormat::Zip, &path, RULES)?;
                    let program = program::program(&path, &name).map_err(|error| InstallError {
                        message: format!("the package does not contain the program `terraform-provider-{name}`"),
                        ..error
                    })?;
                    program::make_executable(&program)?;
                    Hash::of_files(&path).map_err(|error| InstallError::file(&path, error))
                });
                let files = files.await?;
                let hashes = vec![files.clone(), digest.clone()];
                self.check_expected(&found, &hashes)?;
                self.check_lock_and_pins(&found.version, &hashes)?;
                (slot.store(&into, &files, &digest, &package_lock)?, hashes)
            }
        };
        let program = program::program(&directory, &self.source.name)?;
        let installed = self.installed(Some(found.version.clone()), program, hashes, origin);
        Ok(with_origin_info(installed, found))
    }

    /// Returns the cached package if it matches the checksums of the origin.
    async fn cached_if_expected(
        &self,
        slot: &Slot,
        found: &LocatedPackage,
    ) -> Result<Option<InstalledProvider>, InstallError> {
        let at = slot.clone();
        let cached = blocking(move || at.read()).await?;
        let meant =
            |cached: &CachedPackage| cached.checked && found.expected.iter().any(|hash| cached.hashes.contains(hash));
        match cached.filter(meant) {
            Some(_) => self.cached(&found.version).await,
            None => Ok(None),
        }
    }

    /// Returns the path of the zip file, downloading it if needed, and its checksum.
    async fn zip(&self, found: &LocatedPackage, temp: &TempPath) -> Result<(PathBuf, Hash), InstallError> {
        match &found.location {
            PackageLocation::Download { url, authorization, credentials } => {
                let what = format!("the package of {} {} for {}", self.source, found.version, self.platform);
                let authorization = authorization.as_deref();
                let request = HttpRequest { authorization, credentials, ..HttpRequest::new(url, &what) };
                let digest = Hash::of_zip(self.installer.http.download(request, temp.path()).await?);
                // A zip file with a wrong checksum is not opened.
                if found.expected.iter().any(|hash| !hash.is_of_files()) {
                    self.check_expected(found, std::slice::from_ref(&digest))?;
                }
                Ok((temp.path().to_owned(), digest))
            }
            PackageLocation::Zip(path) | PackageLocation::Directory(path) => {
                let read = path.clone();
                let hashed =
                    blocking(move || Hash::of_zip_file(&read).map_err(|error| InstallError::file(&read, error)));
                Ok((path.clone(), hashed.await?))
            }
        }
    }

    /// Checks a package against the checksums of its origin.
    fn check_expected(&self, found: &LocatedPackage, hashes: &[Hash]) -> Result<(), InstallError> {
        if found.expected.is_empty() || found.expected.iter().any(|hash| hashes.contains(hash)) {
            return Ok(());
        }
        let (expected, is) = (join_hashes(&found.expected), join_hashes(hashes));
        let package = format!("the package of {} {} for {}", self.source, found.version, self.platform);
        Err(InstallError::new(format!("{package} does not match its checksum: it is {is}, not {expected}"))
            .hint("it was truncated or modified in transit; nothing was installed"))
    }

    fn installed(
        &self,
        version: Option<Version>,
        program: PathBuf,
        hashes: impl IntoIterator<Item = Hash>,
        origin: &str,
    ) -> InstalledProvider {
        InstalledProvider {
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

/// Adds the other checksums and the warnings of the origin.
fn with_origin_info(installed: InstalledProvider, found: LocatedPackage) -> InstalledProvider {
    InstalledProvider { known: found.known.into_iter().collect(), warnings: found.warnings, ..installed }
}

fn join_hashes(hashes: &[Hash]) -> String {
    hashes.iter().map(Hash::as_str).collect::<Vec<_>>().join(" or ")
}

/// Runs blocking file operations on a separate thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(InstallError::new("Purlin is shutting down")),
        },
    }
}
