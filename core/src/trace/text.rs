//! Texts for people.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// `text`, cut to about `limit` bytes.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let (head, _) = text.split_at(text.floor_char_boundary(limit));
    format!("{head}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("äöü", 3), "ä… (6 bytes)");
    }
}
