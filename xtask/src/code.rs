//! Rust source without what the compiler does not run: comments, the insides of literals, and the line where its tests
//! begin. Enough of the grammar for rules by text search, in time linear in the source; no attempt at the rest.

/// The source with every comment and the inside of every string, byte and character literal replaced by blanks. Line
/// breaks stay, so that line numbers agree.
///
/// A lifetime is told from a character literal by the closing quote: `'a'` and `'\n'` are characters, `'a` is not.
#[must_use]
pub fn without_comments_and_literals(source: &str) -> String {
    let s = source.as_bytes();
    let mut out = s.to_vec();
    let mut at = 0;
    while at < s.len() {
        let end = match s[at] {
            b'/' if s[at..].starts_with(b"//") => blank(&mut out, at, line_end(s, at)),
            b'/' if s[at..].starts_with(b"/*") => blank(&mut out, at, block_comment_end(s, at)),
            b'"' => literal(&mut out, at, quoted_end(s, at, b'"')),
            b'r' if !is_word(s, at) => match raw_string_end(s, at) {
                Some(end) => literal(&mut out, at, end),
                None => at + 1,
            },
            b'\'' => match char_end(s, at) {
                Some(end) => literal(&mut out, at, end),
                None => at + 1,
            },
            _ => at + 1,
        };
        at = end;
    }
    // Only ASCII bytes were written, and whole literals at that, but a character can span the edge of nothing here.
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the whole file is test code: below a `tests` folder, or a module file called `tests.rs`.
#[must_use]
pub fn is_test_file(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs")
        || path.starts_with("crates/e2e/")
}

/// The part of a file that is test code: all of a test file, else all from the first `#[cfg(test)]` before a `mod … {`.
///
/// By habit the tests of a file are its end, so the module's end is not looked for.
#[must_use]
pub fn test_part<'a>(path: &str, source: &'a str) -> &'a str {
    if is_test_file(path) {
        source
    } else {
        &source[tests_start(source)..]
    }
}

/// The part of a file that ships: the complement of [`test_part`].
#[must_use]
pub fn shipped_part<'a>(path: &str, source: &'a str) -> &'a str {
    if is_test_file(path) {
        ""
    } else {
        &source[..tests_start(source)]
    }
}

fn tests_start(source: &str) -> usize {
    let mut from = 0;
    while let Some(found) = source[from..].find("#[cfg(test)]") {
        let start = from + found;
        let rest = source[start + "#[cfg(test)]".len()..].trim_start();
        let head = rest.find(['{', ';']).map_or("", |end| &rest[..=end]);
        if head.starts_with("mod ") && head.ends_with('{') {
            return start;
        }
        from = start + 1;
    }
    source.len()
}

/// Blanks all of `from..to`, and says where to go on.
fn blank(out: &mut [u8], from: usize, to: usize) -> usize {
    for byte in &mut out[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    to
}

/// Blanks a literal but for its first and last byte, which show that one is there.
fn literal(out: &mut [u8], from: usize, to: usize) -> usize {
    if to > from + 1 {
        blank(out, from + 1, to - 1);
    }
    to
}

fn is_word(s: &[u8], at: usize) -> bool {
    // `br"…"` and `cr"…"` are raw strings too.
    at > 0
        && (s[at - 1].is_ascii_alphanumeric() || s[at - 1] == b'_')
        && !matches!(s[at - 1], b'b' | b'c')
}

fn line_end(s: &[u8], at: usize) -> usize {
    s[at..]
        .iter()
        .position(|b| *b == b'\n')
        .map_or(s.len(), |n| at + n)
}

fn block_comment_end(s: &[u8], at: usize) -> usize {
    let (mut depth, mut i) = (0_usize, at);
    while i < s.len() {
        if s[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if s[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    s.len()
}

fn quoted_end(s: &[u8], at: usize, quote: u8) -> usize {
    let mut i = at + 1;
    while i < s.len() {
        match s[i] {
            b'\\' => i += 2,
            b if b == quote => return i + 1,
            _ => i += 1,
        }
    }
    s.len()
}

fn raw_string_end(s: &[u8], at: usize) -> Option<usize> {
    let hashes = s[at + 1..].iter().take_while(|b| **b == b'#').count();
    let open = at + 1 + hashes;
    if s.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let body = &s[open + 1..];
    let found = body.windows(close.len()).position(|w| w == close);
    Some(found.map_or(s.len(), |n| open + 1 + n + close.len()))
}

fn char_end(s: &[u8], at: usize) -> Option<usize> {
    if s.get(at + 1) == Some(&b'\\') {
        return Some(quoted_end(s, at, b'\''));
    }
    // One character, of one to four bytes, and the quote.
    let width = match s.get(at + 1)? {
        b if b.is_ascii() => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    (s.get(at + 1 + width) == Some(&b'\'')).then_some(at + 2 + width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        let cases = [
            ("a // unsafe\nb", "a          \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("dbg!", x)"#, r#"f("    ", x)"#),
            (r#"f("a\"b", x)"#, r#"f("    ", x)"#),
            ("f(r#\"a\"b\"#, x)", "f(r      #, x)"),
            ("f(br\"ab\", x)", "f(br   \", x)"),
            ("['a', '\\'', 'é', '\"']", "[' ', '  ', '  ', ' ']"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("for r in x {}", "for r in x {}"),
        ];
        for (source, expected) in cases {
            assert_eq!(without_comments_and_literals(source), expected, "{source}");
        }
    }

    #[test]
    fn lines_stay() {
        let source = "a\n/* b\n c */\n\"d\ne\"\nf";
        assert_eq!(
            without_comments_and_literals(source).lines().count(),
            source.lines().count()
        );
    }

    #[test]
    fn tests_begin_at_their_module() {
        let source = "fn f() {}\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nfn helper() {}\n#[cfg(test)]\nmod more {\n}\n";
        assert_eq!(
            test_part("crates/x/src/a.rs", source),
            "#[cfg(test)]\nmod more {\n}\n"
        );
        assert_eq!(test_part("crates/x/tests/a.rs", source), source);
        assert_eq!(test_part("crates/x/src/a/tests.rs", source), source);
        assert_eq!(
            shipped_part("crates/x/src/a.rs", "fn f() {}\n"),
            "fn f() {}\n"
        );
        assert_eq!(shipped_part("crates/x/src/a/tests.rs", source), "");
    }
}
