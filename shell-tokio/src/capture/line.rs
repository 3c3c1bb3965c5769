//! The kinds of lines a capture may hold.

use super::CaptureMessage;
use super::rank::RankReader;
use crate::replay::END_SEQ;
use bytes::Bytes;
use serde::Deserialize;

/// Every known kind in one: which fields are there decides.
#[derive(Deserialize)]
struct Line {
    t_ns: Option<u64>,
    /// Live messages and replay replies.
    frames: Option<Vec<String>>,
    /// One synthetic payload.
    topic: Option<String>,
    seq: Option<String>,
    hex: Option<String>,
    /// A whole replay.
    replies: Option<Vec<Vec<String>>>,
}

/// Appends the messages of one line; end markers of a replay are left out.
pub(super) fn parse(
    text: &[u8],
    line: u64,
    ranks: &mut RankReader,
    out: &mut impl Extend<CaptureMessage>,
) -> Result<(), String> {
    let parsed: Line =
        serde_json::from_slice(text).map_err(|error| format!("not a captured message: {error}"))?;
    if let Some(frames) = parsed.frames {
        out.extend(message(&frames, parsed.t_ns, line, ranks)?);
    } else if let Some(replies) = parsed.replies {
        for frames in replies {
            out.extend(message(&frames, None, line, ranks)?);
        }
    } else if let (Some(seq), Some(hex)) = (parsed.seq, parsed.hex) {
        let topic = parsed.topic.unwrap_or_default();
        out.extend(message(&[topic, seq, hex], parsed.t_ns, line, ranks)?);
    } else {
        return Err(
            "no \"frames\", no \"replies\" and no \"seq\" with \"hex\"; is this a capture \
                    (not a truth file)?"
                .to_owned(),
        );
    }
    Ok(())
}

/// `[topic, seq, payload]`, and the replies `["", seq, payload]`, `["", topic, seq, payload]` and
/// `[seq, payload]` (what a REQ socket got). `None` for an end marker.
fn message(
    frames: &[String],
    t_ns: Option<u64>,
    line: u64,
    ranks: &mut RankReader,
) -> Result<Option<CaptureMessage>, String> {
    let (topic, seq, payload) = match frames {
        [seq, payload] => (None, seq, payload),
        [topic, seq, payload] | [_, topic, seq, payload] => (Some(topic), seq, payload),
        other => {
            return Err(format!(
                "{} frames; expected topic, sequence and payload (a reply has one more or less)",
                other.len()
            ));
        }
    };
    let topic = topic.map_or(Ok(Bytes::new()), |topic| unhex("topic", topic))?;
    let seq = unhex("sequence", seq)?;
    let seq: [u8; 8] = seq
        .as_ref()
        .try_into()
        .map_err(|_| format!("a sequence of {} bytes; expected 8, big-endian", seq.len()))?;
    let seq = u64::from_be_bytes(seq);
    let payload = unhex("payload", payload)?;
    if seq == END_SEQ && payload.is_empty() {
        return Ok(None);
    }
    let rank = ranks.rank(&payload);
    Ok(Some(CaptureMessage { line, t_ns, topic, seq, payload, rank }))
}

fn unhex(what: &str, text: &str) -> Result<Bytes, String> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return Err(format!("{what}: an odd number of hex digits; was the file cut?"));
    }
    let mut out = Vec::with_capacity(bytes.len() / 2);
    for pair in bytes.chunks_exact(2) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err(format!("{what}: not hex"));
        };
        out.push(u8::try_from(high << 4 | low).map_err(|_| format!("{what}: not hex"))?);
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (u64, Vec<u8>, Vec<u8>);

    fn one(text: &str) -> Result<Vec<Parts>, String> {
        let mut out = Vec::new();
        parse(text.as_bytes(), 3, &mut RankReader::new(), &mut out)?;
        Ok(out.into_iter().map(|m| (m.seq, m.topic.to_vec(), m.payload.to_vec())).collect())
    }

    #[test]
    fn every_kind_of_line_is_read() {
        let seq = "0000000000000005";
        let got = vec![(5, b"kv".to_vec(), vec![0xab])];
        assert_eq!(
            one(&format!(r#"{{"t_ns":1,"frames":["6b76","{seq}","ab"]}}"#)),
            Ok(got.clone())
        );
        assert_eq!(one(&format!(r#"{{"frames":["","6b76","{seq}","ab"]}}"#)), Ok(got.clone()));
        let wire = format!(r#"{{"topic":"6b76","seq":"{seq}","hex":"AB","expected":{{"a":[1]}}}}"#);
        assert_eq!(one(&wire), Ok(got));
        let bare = vec![(5, Vec::new(), vec![0xab])];
        assert_eq!(one(&format!(r#"{{"frames":["{seq}","ab"]}}"#)), Ok(bare.clone()));
        let end = "ffffffffffffffff";
        let replies = format!(r#"{{"replies":[["","{seq}","ab"],["","{end}",""]]}}"#);
        assert_eq!(one(&replies), Ok(bare));
        assert_eq!(one(&format!(r#"{{"frames":["","","{end}",""]}}"#)), Ok(vec![]));
    }

    #[test]
    fn bad_lines_say_what_is_expected() {
        let error = |text: &str| one(text).unwrap_err();
        assert!(error("nonsense").contains("not a captured message"));
        assert!(error("{}").contains("no \"frames\""));
        assert!(error(r#"{"frames":["ab"]}"#).contains("1 frames"));
        assert!(error(r#"{"frames":["","00","ab"]}"#).contains("sequence of 1 bytes"));
        assert!(error(r#"{"frames":["","0000000000000005","a"]}"#).contains("odd number"));
        assert!(error(r#"{"frames":["","0000000000000005","zz"]}"#).contains("payload: not hex"));
        assert!(error(r#"{"frames":["","0000000000000005","é"]}"#).contains("not hex"));
    }
}
