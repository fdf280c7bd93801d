//! Text that a client supplies and a person reads.

use super::Invalid;

/// How many characters, and whether line breaks, a text may have.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Largest number of Unicode characters.
    pub longest: usize,
    /// Whether it may have several lines.
    pub lines: bool,
}

/// A text as it will be shown: white space around it and hidden characters removed.
///
/// # Errors
/// [`Invalid`] at `field` if nothing is left, if it is too long, or if it has control characters.
pub fn plain(field: &str, text: &str, shape: Shape) -> Result<String, Invalid> {
    let kept: String = text.chars().filter(|&c| !is_hidden(c)).collect();
    let kept = kept.replace("\r\n", "\n");
    let kept = kept.trim();
    if kept.chars().all(is_blank) {
        return Err(Invalid::new(field, "must not be empty"));
    }
    if kept.chars().count() > shape.longest {
        return Err(Invalid::new(field, format!("must have at most {} characters", shape.longest)));
    }
    if kept.chars().any(|c| is_control(c) && !(shape.lines && c == '\n')) {
        return Err(Invalid::new(field, "must not contain control characters"));
    }
    Ok(kept.to_owned())
}

/// White space, and the one other character that is drawn as nothing: the Braille blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}'
}

/// Control characters, and Unicode's own line and paragraph separators.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters that make a text read as another: those that reorder it (Unicode `Bidi_Control`), and those that a
/// person does not see and a program does.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || is_unseen(c)
}

/// Characters that a person does not see and a program does: soft hyphen, Hangul fillers, Mongolian vowel separator,
/// zero-width space, word joiner, invisible operators and the deprecated format characters, byte order mark, tags. The
/// zero-width joiners stay, since scripts and emoji need them.
pub(super) const fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{2060}'..='\u{2064}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e007f}'
    )
}
