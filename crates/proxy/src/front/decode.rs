//! Content codings of request bodies: decoded for scheduling only.

use super::zstd::Frames;
use crate::error::Refusal;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use std::io::{self, Read};

/// A content coding that the router can look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Zstd,
}

impl Coding {
    /// The coding of a request, or `None` when its body is as it is.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(value.as_bytes())
            .trim()
            .to_ascii_lowercase();
        if values.next().is_some() {
            return Err(Refusal::UnknownCoding("several codings".into()));
        }
        match text.as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            "zstd" => Ok(Some(Self::Zstd)),
            // Named in the answer and in the log, so not at any length.
            _ => Err(Refusal::UnknownCoding(text.chars().take(32).collect())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    /// Decodes a body of at most `limit` bytes. The decoder stops at the limit, so a small body that stands for a huge
    /// one costs no more than the limit.
    pub(super) fn decode(self, body: &Bytes, limit: usize) -> Result<Bytes, Refusal> {
        let input = body.as_ref();
        let result = match self {
            Self::Gzip => read_all(flate2::bufread::MultiGzDecoder::new(input), limit),
            // "deflate" means the zlib format (RFC 9110, 8.4.1.2), but some clients send the bare stream.
            Self::Deflate if is_zlib(input) => {
                read_all(flate2::bufread::ZlibDecoder::new(input), limit)
            }
            Self::Deflate => read_all(flate2::bufread::DeflateDecoder::new(input), limit),
            Self::Zstd => read_all(Frames::new(input, limit), limit),
        };
        match result {
            Ok(Decoded::Whole(bytes)) => Ok(bytes.into()),
            Ok(Decoded::TooLong) => Err(Refusal::TooLarge { limit }),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(Refusal::TooLarge { limit })
            }
            Err(error) => Err(Refusal::BadCoding {
                coding: self.name(),
                why: error.to_string(),
            }),
        }
    }
}

/// Room that is set aside at once at most, in bytes: the default limit. Where more is allowed, a buffer grows.
pub(super) const SET_ASIDE: usize = 32 << 20;

/// RFC 1950: method 8, and the header's check bits.
fn is_zlib(input: &[u8]) -> bool {
    matches!(input, [a, b, ..] if a & 0x0f == 8 && u16::from_be_bytes([*a, *b]) % 31 == 0)
}

/// Reads up to `limit` bytes and looks whether there is one more. The usual limit is set aside at once: pages that are
/// never written cost nothing, while a buffer that grows by doubling takes twice the memory for a moment.
fn read_all(mut decoder: impl Read, limit: usize) -> io::Result<Decoded> {
    let mut out = Vec::with_capacity(limit.min(SET_ASIDE));
    decoder.by_ref().take(limit as u64).read_to_end(&mut out)?;
    let ended = out.len() < limit || decoder.read(&mut [0])? == 0;
    Ok(if ended {
        Decoded::Whole(out)
    } else {
        Decoded::TooLong
    })
}

enum Decoded {
    Whole(Vec<u8>),
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const TEXT: &[u8] = br#"{"model":"m","prompt":"the same, in every coding"}"#;

    fn all(mut encoder: impl Read) -> Bytes {
        let mut out = Vec::new();
        encoder.read_to_end(&mut out).unwrap();
        out.into()
    }

    fn packed() -> Vec<(Coding, Bytes)> {
        let zstd =
            ruzstd::encoding::compress_to_vec(TEXT, ruzstd::encoding::CompressionLevel::Fastest);
        vec![
            (Coding::Gzip, all(GzEncoder::new(TEXT, Compression::best()))),
            (
                Coding::Deflate,
                all(ZlibEncoder::new(TEXT, Compression::best())),
            ),
            (
                Coding::Deflate,
                all(DeflateEncoder::new(TEXT, Compression::best())),
            ),
            (Coding::Zstd, zstd.into()),
        ]
    }

    #[test]
    fn every_coding_decodes_and_a_cut_one_does_not() {
        for (coding, body) in packed() {
            assert_eq!(
                coding.decode(&body, TEXT.len()).unwrap(),
                TEXT,
                "{coding:?}"
            );
            assert!(
                matches!(
                    coding.decode(&body, TEXT.len() - 1),
                    Err(Refusal::TooLarge { .. })
                ),
                "{coding:?}"
            );
            let cut = body.slice(..body.len() - 9);
            assert!(
                matches!(coding.decode(&cut, 1000), Err(Refusal::BadCoding { .. })),
                "{coding:?}"
            );
            assert!(
                coding
                    .decode(&Bytes::from_static(b"no such thing"), 1000)
                    .is_err(),
                "{coding:?}"
            );
        }
    }

    #[test]
    fn zstd_may_come_in_several_frames() {
        let frame = |text: &[u8]| {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(text, level)
        };
        let skipped = [b"\x50\x2a\x4d\x18\x03\0\0\0".as_slice(), b"abc"].concat();
        let (a, b) = TEXT.split_at(10);
        for parts in [
            vec![frame(a), frame(b)],
            vec![
                skipped.clone(),
                frame(a),
                skipped.clone(),
                frame(b),
                skipped,
            ],
        ] {
            let body = Bytes::from(parts.concat());
            assert_eq!(Coding::Zstd.decode(&body, TEXT.len()).unwrap(), TEXT);
            let cut = body.slice(..body.len() - 1);
            assert!(Coding::Zstd.decode(&cut, TEXT.len()).is_err());
        }
    }

    #[test]
    fn a_limit_beyond_all_memory_is_not_set_aside() {
        for (coding, body) in packed() {
            assert_eq!(
                coding.decode(&body, usize::MAX).unwrap(),
                TEXT,
                "{coding:?}"
            );
        }
    }

    #[test]
    fn other_codings_are_refused_by_name() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "br".parse().unwrap());
        assert!(matches!(Coding::of(&headers), Err(Refusal::UnknownCoding(name)) if name == "br"));
        headers.insert(CONTENT_ENCODING, " Identity".parse().unwrap());
        assert_eq!(Coding::of(&headers).unwrap(), None);
    }
}
