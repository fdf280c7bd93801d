//! The file that holds the key ring.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sidegate::system::SystemRandom;
use sidegate::vault::{
    KeyFileError, OpenError, Place, Ring, create_key_file, load_key_file, rotate_key_file,
};
use tempfile::TempDir;

use crate::sample::START;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    (folder, path)
}

fn load(path: &Path) -> Result<Ring, KeyFileError> {
    load_key_file(path, Arc::new(SystemRandom))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What is said about a key file with this text.
fn complaint(text: &str) -> String {
    let (_folder, path) = folder();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    load(&path).unwrap_err().to_string()
}

#[test]
fn a_new_key_file_is_for_its_owner_alone_and_can_be_used() {
    let (_folder, path) = folder();
    let id = create_key_file(&path, &SystemRandom, START).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(id.starts_with("2027-01-15-"), "{id}");
    let ring = load(&path).unwrap();
    let sealed = ring.seal(Place::Event, b"plain").unwrap();
    assert_eq!(&**load(&path).unwrap().open(Place::Event, &sealed).unwrap(), b"plain");
}

#[test]
fn r38_a_key_file_that_others_can_read_or_write_is_refused_with_what_to_do() {
    let (_folder, path) = folder();
    create_key_file(&path, &SystemRandom, START).unwrap();
    for bits in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777] {
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        let error = load(&path).unwrap_err();
        assert!(matches!(error, KeyFileError::Exposed(_)), "{bits:o}: {error}");
        assert!(error.to_string().contains("chmod 600"));
        assert!(matches!(rotate_key_file(&path, &SystemRandom, START), Err(KeyFileError::Exposed(_))));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    assert!(load(&path).is_ok());
}

#[test]
fn r26_a_rotated_file_opens_the_old_seals_with_the_new_and_stays_closed_to_others() {
    let (_folder, path) = folder();
    let old_id = create_key_file(&path, &SystemRandom, START).unwrap();
    let old = load(&path).unwrap();
    let new_id = rotate_key_file(&path, &SystemRandom, START).unwrap();
    assert_ne!(old_id, new_id);
    assert_eq!(mode(&path), 0o600);

    let rotated = load(&path).unwrap();
    assert_eq!(format!("{rotated:?}"), format!("{:?}", [&new_id, &old_id]));
    let sealed_before = old.seal(Place::Event, b"plain").unwrap();
    assert_eq!(&**rotated.open(Place::Event, &sealed_before).unwrap(), b"plain");
    let sealed_after = rotated.seal(Place::Event, b"plain").unwrap();
    assert_eq!(old.open(Place::Event, &sealed_after), Err(OpenError::UnknownKey(new_id)));
}

#[test]
fn a_key_file_is_never_overwritten_and_nothing_is_left_beside_it() {
    let (folder, path) = folder();
    create_key_file(&path, &SystemRandom, START).unwrap();
    let before = fs::read(&path).unwrap();
    let error = create_key_file(&path, &SystemRandom, START).unwrap_err();
    assert!(matches!(error, KeyFileError::Exists(_)) && error.to_string().contains("keys rotate"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    rotate_key_file(&path, &SystemRandom, START).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_missing_key_file_is_named() {
    let (_folder, path) = folder();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("keys.toml") && error.contains("No such file"), "{error}");
}

#[test]
fn a_malformed_key_file_is_explained_without_quoting_it() {
    let secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let good = format!("[[keys]]\nid = \"a\"\nsecret = \"{secret}\"\n");
    for (text, why) in [
        (String::new(), "it must be TOML"),
        ("keys = []".to_owned(), "there is no key in it"),
        (format!("{good}oops = {secret}"), "it must be TOML"),
        (format!("{good}other = \"{secret}\""), "it must be TOML"),
        (format!("{good}{good}"), "two keys have the same `id`"),
        (good.replace("\"a\"", "\"\""), "every `id` must have 1 to 64 bytes"),
        (good.replace("\"a\"", &format!("\"{}\"", "a".repeat(65))), "every `id` must have 1 to 64 bytes"),
        (good.replace(secret, &secret[1..]), "every `secret` must be the base64url of 32 bytes"),
        (good.replace(secret, ""), "every `secret` must be the base64url of 32 bytes"),
        (good.replace(secret, "A+/="), "every `secret` must be the base64url of 32 bytes"),
    ] {
        let said = complaint(&text);
        assert!(said.contains(why), "{said}");
        assert!(!said.contains("AAAAAAAA"), "{said}");
    }
}
