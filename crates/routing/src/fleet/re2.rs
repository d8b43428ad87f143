//! Regular expressions in the syntax of RE2, as Go's `regexp` reads it, on top of the crate `regex`.
//!
//! The two syntaxes agree but for corners: quoting, octal escapes, braces that count nothing, what is ASCII and what is
//! Unicode, signs that combine classes. So a pattern is read once, from left to right, as Go reads it, and written anew with
//! such signs only as mean the same in both: every character that could be a sign becomes `\x{…}`.
//!
//! Source: RE2's syntax page, and the behaviour of Go's `regexp/syntax` with its flags `Perl`.

use regex::Regex;
use std::fmt::Write as _;
use std::mem;

/// Most repetitions of one `{n,m}`, as in RE2.
const MAX_REPEAT: u32 = 1000;

/// Names of ASCII classes, as in `[[:alpha:]]`.
const ASCII_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Compiles a pattern that is found anywhere in a text.
///
/// # Errors
/// What is wrong with the pattern, in a few words. Also if it would take more than 10 MiB of memory.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translator::new(pattern).run()?;
    Regex::new(&translated).map_err(|error| {
        // The first lines show the translated pattern; the last one says what is wrong.
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default();
        reason.trim_start_matches("error: ").to_owned()
    })
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// Of groups so far.
    names: Vec<&'a str>,
    /// What was read last is a repetition.
    repeated: bool,
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            rest: pattern,
            out: String::with_capacity(pattern.len()),
            names: Vec::new(),
            repeated: false,
        }
    }

    fn run(mut self) -> Result<String, String> {
        while let Some(sign) = self.next() {
            let repeated = mem::take(&mut self.repeated);
            match sign {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '*' | '+' | '?' => self.repeat(sign.encode_utf8(&mut [0; 4]), repeated)?,
                '{' => match self.counts()? {
                    Some(counts) => self.repeat(&counts, repeated)?,
                    None => self.literal('{'),
                },
                '.' | '^' | '$' | '|' | ')' => self.out.push(sign),
                other => self.literal(other),
            }
        }
        Ok(self.out)
    }

    fn next(&mut self) -> Option<char> {
        let mut signs = self.rest.chars();
        let sign = signs.next();
        self.rest = signs.as_str();
        sign
    }

    /// Whether this comes next; it is taken then.
    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn literal(&mut self, character: char) {
        if character.is_ascii_alphanumeric() || !character.is_ascii() {
            self.out.push(character);
        } else {
            // Writing to a string does not fail.
            let _ = write!(self.out, "\\x{{{:x}}}", u32::from(character));
        }
    }

    fn repeat(&mut self, operator: &str, repeated: bool) -> Result<(), String> {
        if repeated {
            return Err(format!(
                "{operator} cannot follow another repetition operator"
            ));
        }
        self.repeated = true;
        self.out.push_str(operator);
        if self.take("?") {
            self.out.push('?');
        }
        Ok(())
    }

    /// After `{`: the counts with their braces. `None` if they are no counts: then the brace is a character.
    fn counts(&mut self) -> Result<Option<String>, String> {
        let is_count = |text: &str| {
            let leads = text.len() > 1 && text.starts_with('0');
            !text.is_empty() && !leads && text.bytes().all(|b| b.is_ascii_digit())
        };
        let Some((counts, rest)) = self.rest.split_once('}') else {
            return Ok(None);
        };
        let (least, most) = counts.split_once(',').unwrap_or((counts, ""));
        if !is_count(least) || !(most.is_empty() || is_count(most)) {
            return Ok(None);
        }
        let number = |text: &str| {
            let number = text.parse::<u32>().ok().filter(|n| *n <= MAX_REPEAT);
            number.ok_or_else(|| format!("{{{counts}}} is more than {MAX_REPEAT} repetitions"))
        };
        let least = number(least)?;
        if !most.is_empty() && number(most)? < least {
            return Err(format!("{{{counts}}} counts downwards"));
        }
        self.rest = rest;
        Ok(Some(format!("{{{counts}}}")))
    }

    /// After `(`.
    fn group(&mut self) -> Result<(), String> {
        if !self.take("?") {
            self.out.push('(');
            return Ok(());
        }
        if !self.take("P<") && !self.take("<") {
            return self.flags();
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, rest) = self.rest.split_once('>').unwrap_or((self.rest, ""));
        if name.is_empty() || !name.chars().all(is_word) || self.names.contains(&name) {
            return Err(format!("{name:?} cannot be the name of a group"));
        }
        self.names.push(name);
        self.rest = rest;
        // Nobody asks for a group by its name, and `regex` allows fewer names.
        self.out.push('(');
        Ok(())
    }

    /// After `(?`: flags that hold to the end of the group, or for a group of their own. They may come twice here.
    fn flags(&mut self) -> Result<(), String> {
        let end = self.rest.find([':', ')']).ok_or("unclosed group")?;
        let (flags, rest) = self.rest.split_at(end);
        let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
        let is_known = |text: &str| text.chars().all(|flag| "imsU".contains(flag));
        if !is_known(on) || !is_known(off) || flags.ends_with('-') {
            return Err(format!("(?{flags} begins no group that there is"));
        }
        self.rest = rest;
        let once = |wanted: &dyn Fn(char) -> bool| -> String {
            "imsU".chars().filter(|flag| wanted(*flag)).collect()
        };
        let on = once(&|flag| on.contains(flag) && !off.contains(flag));
        let off = once(&|flag| off.contains(flag));
        let minus = if off.is_empty() { "" } else { "-" };
        let end = if self.next() == Some(':') { ":" } else { ")" };
        // `(?)` changes nothing, and `regex` does not know it.
        if !flags.is_empty() || end == ":" {
            self.out.extend(["(?", &on, minus, &off, end]);
        }
        Ok(())
    }

    /// After `\`, outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        if self.take("Q") {
            let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            self.rest = rest;
            quoted.chars().for_each(|character| self.literal(character));
        } else if self.take("A") {
            self.out.push_str("\\A");
        } else if self.take("z") {
            self.out.push_str("\\z");
        } else if self.take("b") {
            self.out.push_str("(?-u:\\b)");
        } else if self.take("B") {
            self.out.push_str("(?-u:\\B)");
        } else if let Some(set) = self.set()? {
            self.out.extend(["[", &set, "]"]);
        } else {
            let character = self.escaped()?;
            self.literal(character);
        }
        Ok(())
    }

    /// After `\`: the set that a letter stands for, as an item of a class.
    fn set(&mut self) -> Result<Option<String>, String> {
        let mut signs = self.rest.chars();
        let Some(letter) = signs.next() else {
            return Ok(None);
        };
        let set = match letter {
            'd' => "0-9",
            'D' => "[^0-9]",
            's' => r"\t\n\f\r\x20",
            'S' => r"[^\t\n\f\r\x20]",
            'w' => "0-9A-Za-z_",
            'W' => "[^0-9A-Za-z_]",
            'p' | 'P' => {
                self.rest = signs.as_str();
                return self.unicode(letter == 'P').map(Some);
            }
            _ => return Ok(None),
        };
        self.rest = signs.as_str();
        Ok(Some(set.to_owned()))
    }

    /// After `\p` or `\P`.
    fn unicode(&mut self, negated: bool) -> Result<String, String> {
        let no_class = || "a Unicode class is not named".to_owned();
        let name = if self.take("{") {
            let (name, rest) = self.rest.split_once('}').ok_or_else(no_class)?;
            self.rest = rest;
            name
        } else {
            let before = self.rest;
            self.next().ok_or_else(no_class)?;
            &before[..before.len() - self.rest.len()]
        };
        let (negated, name) = match name.strip_prefix('^') {
            Some(name) => (!negated, name),
            None => (negated, name),
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(no_class());
        }
        Ok(format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' }))
    }

    /// One escaped character, after `\`.
    fn escaped(&mut self) -> Result<char, String> {
        let sign = self.next().ok_or("a backslash at the end")?;
        let code = match sign {
            'a' => 0x07,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            'x' => self.hexadecimal()?,
            '0'..='7' => self.octal(sign)?,
            _ if sign.is_ascii() && !sign.is_ascii_alphanumeric() => return Ok(sign),
            _ => return Err(format!("unknown escape \\{sign}")),
        };
        char::from_u32(code).ok_or_else(|| format!("\\x{{{code:x}}} is no character"))
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let digits = if self.take("{") {
            let (digits, rest) = self.rest.split_once('}').unwrap_or_default();
            self.rest = rest;
            digits
        } else {
            let (digits, rest) = self.rest.split_at_checked(2).unwrap_or_default();
            self.rest = rest;
            digits
        };
        // Else a sign would be taken.
        let is_number = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok();
        code.filter(|_| is_number)
            .ok_or_else(|| "\\x is not followed by a hexadecimal number".to_owned())
    }

    fn octal(&mut self, first: char) -> Result<u32, String> {
        let is_digit = |b: &u8| (b'0'..=b'7').contains(b);
        let more = self.rest.bytes().take(2).take_while(is_digit).count();
        if first != '0' && more == 0 {
            return Err(format!("\\{first}: there are no backreferences"));
        }
        let (digits, rest) = self.rest.split_at(more);
        self.rest = rest;
        let first = first.to_digit(8).unwrap_or_default();
        Ok(digits
            .bytes()
            .fold(first, |code, digit| code * 8 + u32::from(digit - b'0')))
    }

    /// After `[`, up to the `]` that ends it.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        let mut first = true;
        while mem::take(&mut first) || !self.take("]") {
            if self.ascii_class()? {
                continue;
            }
            let before = self.rest;
            if self.take("\\") {
                if let Some(set) = self.set()? {
                    self.out.push_str(&set);
                    continue;
                }
                self.rest = before;
            }
            let low = self.class_character()?;
            self.literal(low);
            if self.rest.len() > 1 && !self.rest.starts_with("-]") && self.take("-") {
                let high = self.class_character()?;
                if high < low {
                    return Err(format!("the range {low:?} to {high:?} is empty"));
                }
                self.out.push('-');
                self.literal(high);
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, String> {
        match self.next() {
            Some('\\') => self.escaped(),
            Some(character) => Ok(character),
            None => Err("unclosed character class".to_owned()),
        }
    }

    /// Within a class: takes `[:name:]` if that comes next. One that is not closed is characters.
    fn ascii_class(&mut self) -> Result<bool, String> {
        let open = self.rest.strip_prefix("[:");
        let Some((name, rest)) = open.and_then(|open| open.split_once(":]")) else {
            return Ok(false);
        };
        if !ASCII_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("unknown class [:{name}:]"));
        }
        self.out.extend(["[:", name, ":]"]);
        self.rest = rest;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
