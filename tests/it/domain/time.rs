//! Points in time, as they are written.

use proptest::prelude::*;
use sidegate::domain::Timestamp;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[test]
fn a_time_is_written_with_three_digits_of_a_second() {
    for (millis, text) in [(0, "00.000Z"), (100, "00.100Z"), (120, "00.120Z"), (1_007, "01.007Z")] {
        assert_eq!(Timestamp::from_millis(millis).to_string(), format!("1970-01-01T00:00:{text}"));
    }
}

proptest! {
    #[test]
    fn a_time_reads_back_and_sorts_as_its_text(one in 0_i64..4_102_444_800_000, other in 0_i64..4_102_444_800_000) {
        let text = |millis| Timestamp::from_millis(millis).to_string();
        let read = OffsetDateTime::parse(&text(one), &Rfc3339).unwrap();
        prop_assert_eq!(read.unix_timestamp_nanos(), i128::from(one) * 1_000_000);
        prop_assert_eq!(text(one).cmp(&text(other)), one.cmp(&other));
    }
}
