//! Zstandard bodies (RFC 8878): any number of frames, none of which takes more memory than it may.

use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};

/// Window that every decoder is asked to have, in bytes (RFC 9659, section 3).
const COMMON_WINDOW: u64 = 8 << 20;
/// The four bytes of a frame's start (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// Reads the content of all frames.
///
/// The decoder believes a frame about its window, up to terabytes, and lets nothing out before it has filled it. So a
/// frame that asks for too much is refused before the decoder sees it.
pub(super) struct Frames<'a> {
    /// What follows the frame that is being read.
    rest: &'a [u8],
    frame: Option<StreamingDecoder<&'a [u8], ruzstd::decoding::FrameDecoder>>,
    max_window: u64,
}

impl<'a> Frames<'a> {
    /// For content of at most `limit` bytes.
    pub(super) fn new(body: &'a [u8], limit: usize) -> Self {
        Self {
            rest: body,
            frame: None,
            max_window: COMMON_WINDOW.max(limit as u64),
        }
    }

    /// Begins with the next frame. Returns whether there is one.
    fn next_frame(&mut self) -> io::Result<bool> {
        self.skip()?;
        if self.rest.is_empty() {
            return Ok(false);
        }
        match Window::of(self.rest) {
            Some(Window::Content(size)) if size > self.max_window => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Some(Window::Stated(size)) if size > self.max_window => {
                let most = self.max_window;
                let why = format!("a frame asks for a window of {size} bytes, {most} is the most");
                return Err(io::Error::other(why));
            }
            // What is no frame is for the decoder to name.
            _ => {}
        }
        self.frame = Some(StreamingDecoder::new(self.rest).map_err(io::Error::other)?);
        Ok(true)
    }

    /// Passes over frames that hold no content (RFC 8878, 3.1.2).
    fn skip(&mut self) -> io::Result<()> {
        while let Some(([0x50..=0x5f, 0x2a, 0x4d, 0x18], rest)) = self.rest.split_first_chunk() {
            let (size, rest) = rest
                .split_first_chunk()
                .ok_or(io::ErrorKind::UnexpectedEof)?;
            let size = u32::from_le_bytes(*size) as usize;
            self.rest = rest.get(size..).ok_or(io::ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 {
                    return Ok(read);
                }
                self.rest = *frame.get_ref();
                self.frame = None;
            }
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

/// What a frame says about the memory that its decoder needs.
#[derive(Debug, PartialEq, Eq)]
enum Window {
    /// It has this size, in bytes.
    Stated(u64),
    /// It is all of the content, which has this size, in bytes.
    Content(u64),
}

impl Window {
    /// Reads a frame's header (RFC 8878, 3.1.1.1); `None` where there is none.
    fn of(frame: &[u8]) -> Option<Self> {
        let (&descriptor, rest) = frame.strip_prefix(&MAGIC)?.split_first()?;
        if descriptor & 0x20 == 0 {
            let &window = rest.first()?;
            let base = 1_u64 << (10 + (window >> 3));
            return Some(Self::Stated(base + base / 8 * u64::from(window & 7)));
        }
        let dictionary_id = match descriptor & 3 {
            3 => 4,
            bytes => usize::from(bytes),
        };
        let bytes = 1 << (descriptor >> 6);
        let size = rest
            .get(dictionary_id..)?
            .get(..bytes)?
            .iter()
            .rev()
            .fold(0, |size, &byte| (size << 8) | u64::from(byte));
        Some(Self::Content(if bytes == 2 { size + 256 } else { size }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn read(body: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Frames::new(body, limit)
            .take(limit as u64 + 1)
            .read_to_end(&mut out)?;
        Ok(out)
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    /// A frame with this window and this many blocks of 128 KiB, each of them four bytes long.
    fn blown_up(window: u8, blocks: usize) -> Vec<u8> {
        let mut frame = [&MAGIC[..], &[0, window]].concat();
        for n in 1..=blocks {
            let last = u8::from(n == blocks);
            frame.extend_from_slice(&[0x02 | last, 0, 0x10, b' ']);
        }
        frame
    }

    #[test]
    fn all_frames_are_read_and_those_without_content_passed_over() {
        let skipped: &[u8] = &[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let body = [
            skipped,
            &packed(b"one "),
            skipped,
            &packed(b""),
            &packed(b"two"),
            skipped,
        ];
        assert_eq!(read(&body.concat(), 100).unwrap(), b"one two");
        assert_eq!(read(skipped, 100).unwrap(), b"");
        assert!(read(&skipped[..10], 100).is_err());
        assert!(read(&[&packed(b"one ")[..], b"rubbish"].concat(), 100).is_err());
    }

    #[test]
    fn a_frame_cannot_ask_for_more_memory_than_its_body_may_have() {
        // 2^41 bytes: nothing of 128 MiB would come out before its end.
        let error = read(&blown_up(31 << 3, 1000), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("2199023255552 bytes"), "{error}");
        // 8 MiB are allowed whatever the limit is, and a longer body may have a larger one.
        assert_eq!(
            read(&blown_up(13 << 3, 2), 1 << 20).unwrap().len(),
            256 << 10
        );
        assert!(read(&blown_up(14 << 3, 2), 1 << 20).is_err());
        assert_eq!(
            read(&blown_up(14 << 3, 2), 16 << 20).unwrap().len(),
            256 << 10
        );
    }

    #[test]
    fn a_frame_that_names_a_size_above_the_limit_is_too_large() {
        let header = [&MAGIC[..], &[0xe0], &(9_u64 << 20).to_le_bytes()].concat();
        assert_eq!(Window::of(&header), Some(Window::Content(9 << 20)));
        let kind = read(&header, 1 << 20).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::FileTooLarge);
        for (descriptor, field, size) in [
            (0x20_u8, &[7][..], 7),
            (0x60, &[1, 1], 0x101 + 256),
            (0xa0, &[1, 0, 0, 1], 0x0100_0001),
            (0x23, &[9, 9, 9, 9, 7], 7),
        ] {
            let header = [&MAGIC[..], &[descriptor], field].concat();
            assert_eq!(Window::of(&header), Some(Window::Content(size)));
            assert_eq!(Window::of(&header[..header.len() - 1]), None);
        }
    }
}
