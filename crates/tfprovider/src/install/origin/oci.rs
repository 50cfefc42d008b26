//! An OCI registry with the layout of OpenTofu's OCI mirrors: a repository for each provider, and a tag for each
//! version, which refers to an index with a manifest for each platform, whose only layer is the published zip file.

use fetch::oci::{Descriptor, INDEX, MANIFEST, Manifest, Platform as Target, Repository, ZIP};
use fetch::{Credentials, Http};
use semver::Version;
use serde::Deserialize;

use super::network::no_package;
use super::{LocatedPackage, PackageLocation};
use crate::install::address::Source;
use crate::install::{Hash, InstallError, Platform};

const PROVIDER: &str = "application/vnd.opentofu.provider";
const TARGET: &str = "application/vnd.opentofu.provider-target";

/// An OCI mirror for one provider.
#[derive(Debug)]
pub struct OciMirror<'a> {
    repository: Repository<'a>,
    source: &'a Source,
    platform: &'a Platform,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    #[serde(default)]
    artifact_type: String,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

impl Index {
    /// The manifests of packages with their platforms.
    fn targets(&self) -> impl Iterator<Item = (&Descriptor, &Target)> {
        self.manifests
            .iter()
            .filter(|descriptor| descriptor.artifact_type == TARGET && descriptor.media_type == MANIFEST)
            .filter_map(|descriptor| Some((descriptor, descriptor.platform.as_ref()?)))
    }
}

impl<'a> OciMirror<'a> {
    /// Expands the repository template for the provider.
    pub fn new(
        template: &str,
        source: &'a Source,
        platform: &'a Platform,
        http: &'a Http,
        credentials: &'a Credentials,
    ) -> Result<Self, InstallError> {
        let whole = template
            .replace("${hostname}", &source.host)
            .replace("${namespace}", &source.namespace)
            .replace("${type}", &source.name);
        if whole.contains("${") {
            let why = "only the variables ${hostname}, ${namespace} and ${type} are supported";
            return Err(invalid_template(template, why));
        }
        // A repository name cannot contain the colon of a port.
        let name = match whole.split_once('/') {
            Some((host, path)) => format!("{host}/{}", path.replace(':', "-")),
            None => whole,
        };
        let repository = Repository::new(&name, http, credentials).map_err(|why| invalid_template(template, why))?;
        Ok(Self { repository, source, platform })
    }

    /// `HOST/REPOSITORY`.
    pub fn name(&self) -> String {
        self.repository.name()
    }

    /// Lists the versions. The list is empty if the registry does not have the repository.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        // A tag cannot contain `+`.
        let tags = self.repository.tags().await?;
        Ok(tags.iter().filter_map(|tag| Version::parse(&tag.replace('_', "+")).ok()).collect())
    }

    pub async fn locate(&self, version: &Version) -> Result<LocatedPackage, InstallError> {
        let Self { repository, source, platform } = self;
        let tag = version.to_string().replace('+', "_");
        let what = format!("the index of {}:{tag}", self.name());
        let index: Option<Index> = repository.published(&tag, INDEX, &what).await?;
        let index = index.ok_or_else(|| no_package(source, version, platform, &[]))?;
        if index.artifact_type != PROVIDER {
            return Err(wrong_type(&what, &index.artifact_type, PROVIDER));
        }
        let chosen = index
            .targets()
            .find(|(_, target)| target.os == platform.os && target.architecture == platform.architecture)
            .map(|(descriptor, _)| descriptor)
            .ok_or_else(|| {
                let names = index.targets().map(|(_, target)| format!("{}_{}", target.os, target.architecture));
                no_package(source, version, platform, &names.collect::<Vec<_>>())
            })?;

        let what = format!("the manifest of {}:{tag} for {platform}", self.name());
        let manifest: Option<Manifest> = repository.published(&chosen.digest, MANIFEST, &what).await?;
        let manifest =
            manifest.ok_or_else(|| InstallError::new(format!("{what} does not exist: {} (404)", chosen.digest)))?;
        if manifest.artifact_type != TARGET {
            return Err(wrong_type(&what, &manifest.artifact_type, TARGET));
        }
        let [layer] = &manifest.layers[..] else {
            let count = manifest.layers.len();
            return Err(InstallError::new(format!("{what} has {count} layers, not one")).at("spec.package.ociMirror"));
        };
        if layer.media_type != ZIP {
            return Err(wrong_type(&what, &layer.media_type, ZIP));
        }
        let expected = layer.sha256().and_then(Hash::of_zip_hex).ok_or_else(|| {
            InstallError::new(format!("{what} cannot be read: `{}` is not a SHA-256 checksum", layer.digest))
        })?;
        Ok(LocatedPackage {
            version: version.clone(),
            location: PackageLocation::Download {
                url: repository.content(&layer.digest)?,
                authorization: repository.authorization(),
                credentials: repository.hint(),
            },
            known: vec![expected.clone()],
            expected: vec![expected],
            warnings: Vec::new(),
        })
    }
}

/// The error for an artifact of another type.
fn wrong_type(what: &str, is: &str, wanted: &str) -> InstallError {
    InstallError::new(format!("{what} is of type `{is}`, not `{wanted}`"))
        .at("spec.package.ociMirror")
        .hint("the repository does not contain provider packages in the format of OpenTofu's OCI mirrors")
}

fn invalid_template(template: &str, why: &str) -> InstallError {
    InstallError::new(format!("`{template}` is not a valid repository template: {why}"))
        .at("spec.package.ociMirror")
        .hint("write HOST/PATH/${hostname}/${namespace}/${type}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_expands_to_the_repository() {
        let source = Source::parse("registry.example.com/acme/random").unwrap();
        let platform = Platform::current();
        let (http, credentials) = (Http::default(), Credentials::default());
        let name = |template: &str| {
            OciMirror::new(template, &source, &platform, &http, &credentials)
                .map_or_else(|error| error.message, |mirror| mirror.name())
        };
        assert_eq!(
            name("mirror.example.com:5000/tofu/${hostname}/${namespace}/${type}"),
            "mirror.example.com:5000/tofu/registry.example.com/acme/random"
        );
        assert_eq!(name("a.io/x"), "a.io/x");
        for wrong in ["a.io", "a.io/X", "a.io/${name}", "/x", "https://a.io/x"] {
            assert!(name(wrong).contains("is not a valid repository template"), "{wrong}");
        }
    }
}
