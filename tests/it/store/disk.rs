//! When the disk is full the embedded store says that it is unavailable, and loses nothing.

use super::child::{Child, Told};
use super::crash::{Acknowledged, assert_nothing_lost};

#[tokio::test]
async fn r40_on_a_full_disk_commits_are_refused_nothing_acknowledged_is_lost_and_writing_works_again() {
    // In blocks of 512 or 1024 bytes, as the shell has it.
    for largest_file in [300, 900, 3000] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sidegate.db");
        let mut acknowledged = Acknowledged::new();
        let (mut done_before, mut refused, mut done_after, mut recovered) = (0, 0, 0, false);

        let mut child = Child::start(&path, Some(largest_file));
        while let Some(told) = child.told() {
            match told {
                Told::Done(id, version) => {
                    acknowledged.insert(id, version);
                    *(if refused == 0 { &mut done_before } else { &mut done_after }) += 1;
                }
                Told::Refused => refused += 1,
                Told::Recovered => recovered = true,
            }
        }
        drop(child);

        assert!(done_before > 0 && refused > 0, "{done_before} done and {refused} refused at {largest_file}");
        assert!(recovered && done_after > 0, "no recovery within the process at {largest_file}");
        assert_nothing_lost(&path, &acknowledged).await;

        // And with the same file in another process, without the limit.
        let mut child = Child::start(&path, None);
        for _ in 0..50 {
            let Some(Told::Done(id, version)) = child.told() else { panic!("writing does not work again") };
            acknowledged.insert(id, version);
        }
        child.kill();
        assert_nothing_lost(&path, &acknowledged).await;
    }
}
