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
pub struct Job<'a> {
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
        let package = origin.locate(&version).await?;
        self.install_from(package, &origin.to_string()).await
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
                let package = mirror.locate(&version)?;
                return self.install_from(package, &Origin::Filesystem(mirror).to_string()).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Uses the locked version in place where another program has installed it. A package that is not the locked one is left
    /// alone: the origin has the right one.
    async fn find_installed(&self) -> Option<InstalledProvider> {
        let root = self.installer.installed.as_deref()?;
        let locked = self.locked.filter(|locked| !locked.hashes.is_empty())?;
        let package = self.mirror(root).locate(&locked.version).ok()?;
        let origin = root.display().to_string();
        self.install_from(package, &origin).await.ok()
    }

    fn mirror<'b>(&'b self, root: &'b Path) -> FilesystemMirror<'b> {
        FilesystemMirror { root, source: &self.source, platform: &self.platform }
    }

    /// Selects the locked version if it is available, or else the newest matching version.
    fn choose(&self, versions: &[Version]) -> Option<Version> {
        let fitting: Vec<&Version> = versions.iter().filter(|version| self.constraint.allows(version)).collect();
        let locked = self.locked.filter(|locked| fitting.contains(&&locked.version)).map(|locked| &locked.version);
        locked.or_else(|| fitting.into_iter().max_by(|a, b| a.cmp_precedence(b))).cloned()
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
        let Some(cached) = blocking(move || slot.read()).await? else { return Ok(None) };
        let can_be_checked = cached.checked || self.trusted_hashes(version).any(|hashes| !hashes.is_empty());
        if !can_be_checked || self.check_lock_and_pins(version, &cached.hashes).is_err() {
            return Ok(None);
        }
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
        let mut trusted = self.trusted_hashes(version);
        let (locked, pins) = (trusted.next().unwrap_or_default(), trusted.next().unwrap_or_default());
        if !allows(&pins, hashes) {
            return Err(self
                .mismatch(version, hashes, "pinned")
                .at("spec.checksums")
                .hint("compare it with a trusted copy, then correct the checksums"));
        }
        if !allows(&locked, hashes) {
            return Err(self
                .mismatch(version, hashes, "locked")
                .hint("compare it with a trusted copy; `purlin provider lock` accepts it"));
        }
        Ok(())
    }

    fn mismatch(&self, version: &Version, hashes: &[Hash], known: &str) -> InstallError {
        InstallError::new(format!(
            "the package of {} {version} for {} does not match the {known} checksums: its checksum is {}",
            self.source,
            self.platform,
            join_hashes(hashes)
        ))
    }

    /// Installs the package that was located at an origin.
    async fn install_from(&self, package: LocatedPackage, origin: &str) -> Result<InstalledProvider, InstallError> {
        match &package.location {
            PackageLocation::Directory(directory) => {
                let directory = directory.clone();
                self.use_in_place(directory, Some(package.version.clone()), Some(&package), origin).await
            }
            PackageLocation::Zip(_) | PackageLocation::Download { .. } => self.unpack(package, origin).await,
        }
    }

    /// Uses an unpacked package or a program in place.
    async fn use_in_place(
        &self,
        path: PathBuf,
        version: Option<Version>,
        package: Option<&LocatedPackage>,
        origin: &str,
    ) -> Result<InstalledProvider, InstallError> {
        let program = program::program(&path, &self.source.name).map_err(|error| match package {
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
    async fn unpack(&self, package: LocatedPackage, origin: &str) -> Result<InstalledProvider, InstallError> {
        let slot = self.slot(&package.version);
        let package_lock = slot.lock().await?;
        // Another process may have stored the package while this one waited for the lock.
        if let Some(cached) = self.cached_if_expected(&slot, &package).await? {
            return Ok(InstalledProvider { origin: origin.to_owned(), ..with_origin_info(cached, package) });
        }
        let temp = slot.temp_path("zip");
        let (zip, digest) = self.zip(&package, &temp).await?;
        let at = slot.clone();
        let cached = blocking(move || at.read()).await?.filter(|cached| cached.hashes.contains(&digest));
        let (directory, hashes) = match cached {
            Some(cached) => {
                self.check_expected(&package, &cached.hashes)?;
                self.check_lock_and_pins(&package.version, &cached.hashes)?;
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
                self.check_expected(&package, &hashes)?;
                self.check_lock_and_pins(&package.version, &hashes)?;
                (slot.store(&into, &files, &digest, &package_lock)?, hashes)
            }
        };
        let program = program::program(&directory, &self.source.name)?;
        let installed = self.installed(Some(package.version.clone()), program, hashes, origin);
        Ok(with_origin_info(installed, package))
    }

    /// Returns the cached package if it matches the checksums of the origin.
    async fn cached_if_expected(
        &self,
        slot: &Slot,
        package: &LocatedPackage,
    ) -> Result<Option<InstalledProvider>, InstallError> {
        let at = slot.clone();
        let cached = blocking(move || at.read()).await?;
        let meant =
            |cached: &CachedPackage| cached.checked && package.expected.iter().any(|hash| cached.hashes.contains(hash));
        match cached.filter(meant) {
            Some(_) => self.cached(&package.version).await,
            None => Ok(None),
        }
    }

    /// Returns the path of the zip file, downloading it if needed, and its checksum.
    async fn zip(&self, package: &LocatedPackage, temp: &TempPath) -> Result<(PathBuf, Hash), InstallError> {
        match &package.location {
            PackageLocation::Download { url, authorization, credentials } => {
                let what = format!("the package of {} {} for {}", self.source, package.version, self.platform);
                let authorization = authorization.as_deref();
                let request = HttpRequest { authorization, credentials, ..HttpRequest::new(url, &what) };
                let digest = Hash::of_zip(self.installer.http.download(request, temp.path()).await?);
                // A zip file with a wrong checksum is not opened.
                if package.expected.iter().any(|hash| !hash.is_of_files()) {
                    self.check_expected(package, std::slice::from_ref(&digest))?;
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
    fn check_expected(&self, located: &LocatedPackage, hashes: &[Hash]) -> Result<(), InstallError> {
        if located.expected.is_empty() || located.expected.iter().any(|hash| hashes.contains(hash)) {
            return Ok(());
        }
        let (expected, is) = (join_hashes(&located.expected), join_hashes(hashes));
        let package = format!("the package of {} {} for {}", self.source, located.version, self.platform);
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
fn with_origin_info(installed: InstalledProvider, package: LocatedPackage) -> InstalledProvider {
    InstalledProvider { known: package.known.into_iter().collect(), warnings: package.warnings, ..installed }
}

/// Whether a package with these checksums is the known one, if one is known.
fn allows(known: &[Hash], hashes: &[Hash]) -> bool {
    known.is_empty() || known.iter().any(|hash| hashes.contains(hash))
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
