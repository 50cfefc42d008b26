use std::io::Write as _;

use tar::{Builder, Header};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

const RULES: UnpackRules = UnpackRules { bytes: 2 << 20, entries: 9, links: Links::Inside };

fn zip(path: &Path, entries: &[(&str, &str)]) {
    let mut writer = ZipWriter::new(File::create(path).unwrap());
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

fn unpacked(entries: &[(&str, &str)], rules: UnpackRules) -> Result<Vec<PathBuf>, String> {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("into");
    fs::create_dir(&into).unwrap();
    let archive = folder.path().join("package.zip");
    zip(&archive, entries);
    unpack(&archive, ArchiveFormat::Zip, &into, rules).map_err(|error| error.to_string())?;
    let found = entries.iter().map(|(name, _)| fs::metadata(into.join(name)).map(|_| PathBuf::from(name)).unwrap());
    let found = found.collect();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no files outside of the directory");
    Ok(found)
}

/// A tar file. Names are written as they are: the library refuses those that tests need.
fn tar(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        let body = if *kind == EntryType::Symlink {
            header.set_link_name_literal(content.as_bytes()).unwrap();
            ""
        } else {
            content
        };
        header.set_size(body.len() as u64);
        header.set_cksum();
        builder.append(&header, body.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// The files of an unpacked tar file, or the error.
fn untarred(entries: &[(&str, EntryType, &str)]) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("into");
    fs::create_dir(&into).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let archive = folder.path().join("package.tar");
    fs::write(&archive, tar(entries)).unwrap();
    let format = ArchiveFormat::Tar(Compression::None);
    unpack(&archive, format, &into, RULES).map_err(|error| error.message)?;
    assert_eq!(fs::read_to_string(folder.path().join("secret")).unwrap(), "secret");
    let mut names: Vec<String> =
        fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    Ok(names)
}

#[test]
fn files_are_only_written_inside_of_the_directory() {
    let good = unpacked(&[("terraform-provider-x_v1", "program"), ("docs/LICENSE", "free")], RULES);
    assert_eq!(good.unwrap().len(), 2);
    for name in ["../evil", "/evil", "a/../../evil", "a//b", "./a", "a\\..\\evil", ""] {
        let error = unpacked(&[(name, "x")], RULES).unwrap_err();
        assert!(error.contains("outside of the package directory"), "{name}: {error}");
    }
    for name in ["../evil", "/evil", "a/../../evil"] {
        let error = untarred(&[(name, EntryType::Regular, "x")]).unwrap_err();
        assert!(error.contains("outside of the package directory"), "{name}: {error}");
    }
}

#[test]
fn a_symbolic_link_is_rejected_where_there_may_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("package.zip");
    let mut writer = ZipWriter::new(File::create(&path).unwrap());
    writer.add_symlink("terraform-provider-x", "/bin/sh", SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap();
    let into = folder.path().join("into");
    fs::create_dir(&into).unwrap();
    let rules = UnpackRules { links: Links::Refused, ..RULES };
    let error = unpack(&path, ArchiveFormat::Zip, &into, rules).unwrap_err();
    assert_eq!(error.message, "the package is not valid: `terraform-provider-x` is a symbolic link");
}

#[test]
fn links_stay_inside_of_the_package() {
    let (file, link) = (EntryType::Regular, EntryType::Symlink);
    let good = untarred(&[("link.tf", link, "main.tf"), ("main.tf", file, ""), ("nowhere", link, "gone")]);
    assert_eq!(good.unwrap(), ["link.tf", "main.tf"], "a link to nothing is removed");
    for leads_to in ["../secret", "/etc/passwd", "top/../secret"] {
        let error = untarred(&[("top", link, "."), ("link", link, leads_to)]).unwrap_err();
        assert_eq!(error, "the package is not valid: the symbolic link `link` leads out of the package", "{leads_to}");
    }
    let error = untarred(&[("link", link, ".."), ("link/secret", file, "changed")]).unwrap_err();
    assert_eq!(error, "the package is not valid: it contains `link` twice", "nothing is written through a link");
}

#[test]
fn a_tar_file_has_files_and_directories_only() {
    let entries = [(".", EntryType::Directory, ""), ("./main.tf", EntryType::Regular, "")];
    assert_eq!(untarred(&entries).unwrap(), ["main.tf"]);
    for kind in [EntryType::Fifo, EntryType::Char, EntryType::Link] {
        let error = untarred(&[("x", kind, "")]).unwrap_err();
        assert_eq!(error, "the package is not valid: `x` is neither a file nor a directory");
    }
}

#[test]
fn compressed_tar_files_are_unpacked() {
    let content = tar(&[("main.tf", EntryType::Regular, "locals {}\n")]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&content).unwrap();
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    xz.write_all(&content).unwrap();
    for (name, compressed) in [("a.tgz", gzip.finish().unwrap()), ("a.tar.xz", xz.finish().unwrap())] {
        let folder = tempfile::tempdir().unwrap();
        let (archive, into) = (folder.path().join(name), folder.path().join("into"));
        fs::write(&archive, &compressed).unwrap();
        fs::create_dir(&into).unwrap();
        unpack(&archive, ArchiveFormat::of_file(name).unwrap(), &into, RULES).unwrap();
        assert_eq!(fs::read_to_string(into.join("main.tf")).unwrap(), "locals {}\n");
    }
}

#[test]
fn a_package_over_the_limits_is_rejected() {
    let zeros = "0".repeat(3 << 20);
    let error = unpacked(&[("a", &zeros)], RULES).unwrap_err();
    assert_eq!(error, "the package is not valid: it unpacks to more than 2 MiB");
    let error = unpacked(&[("a", ""), ("b", "")], UnpackRules { entries: 1, ..RULES }).unwrap_err();
    assert_eq!(error, "the package is not valid: it contains more than 1 files");
}

#[test]
fn an_invalid_archive_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("package.zip");
    fs::write(&path, "<html>not found</html>").unwrap();
    for name in ["zip", "tar", "tar.gz", "tar.xz"] {
        let error = unpack(&path, ArchiveFormat::named(name).unwrap(), folder.path(), RULES).unwrap_err();
        assert!(error.message.starts_with("the package is not valid: "), "{name}: {error}");
    }
}

#[test]
fn formats_are_known_by_the_names_of_files() {
    assert_eq!(ArchiveFormat::of_file("v1.tar.gz"), Some(ArchiveFormat::Tar(Compression::Gzip)));
    assert_eq!(ArchiveFormat::of_file("a.zip"), Some(ArchiveFormat::Zip));
    for name in ["zip", "a.tf", "a.tar.bz2", "azip", ""] {
        assert_eq!(ArchiveFormat::of_file(name), None, "{name}");
    }
}
