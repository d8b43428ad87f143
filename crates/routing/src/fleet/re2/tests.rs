//! Facts of RE2's syntax page, as Go's `regexp` answers them.

use super::compile;

/// Pattern, a text that it is found in, and one that it is not found in.
const FACTS: &[(&str, &str, &str)] = &[
    // Quoting.
    (r"^\Qa.b\E$", "a.b", "axb"),
    (r"^\Qa.b", "a.b", "axb"),
    (r"^a\Qbc\E+$", "abcc", "abcbc"),
    (r"^a\Q\E+$", "aa", "b"),
    (r"^\Q\\E$", r"\", "E"),
    // Characters by number.
    (r"^\141\x62\x{63}$", "abc", "141bc"),
    (r"^\0\07$", "\0\u{7}", "007"),
    (r"^\1234$", "S4", "\u{53}"),
    (r"^\777$", "\u{1ff}", "777"),
    (r"^\a\f\t\n\r\v$", "\x07\x0c\t\n\r\x0b", "aftnrv"),
    (r"^\x{00e9}.$", "\u{e9}\u{e9}", "e"),
    // Braces that count nothing.
    ("^a{,5}$", "a{,5}", "aaa"),
    ("^a{b}$", "a{b}", "ab"),
    ("^a{$", "a{", "a"),
    ("^a{1$", "a{1", "a"),
    ("^a{01}$", "a{01}", "a"),
    ("^a{1,2,3}$", "a{1,2,3}", "aa"),
    ("^{}$", "{}", ""),
    ("^}]$", "}]", ""),
    ("^a{2}$", "aa", "a"),
    ("^a{2,}$", "aaa", "a"),
    ("^a{0,1}?$", "a", "aa"),
    ("^(?:a{1000})$", "", "a"),
    // Classes. What joins classes elsewhere is a character.
    ("^[[a]$", "[", "b"),
    ("^[]a]$", "]", "b"),
    ("^[^]a]$", "b", "]"),
    ("^[a&&b]+$", "a&b", "c"),
    ("^[a~~b]+$", "~a", "&"),
    ("^[a~!--c]+$", "a-c~", "b"),
    ("^[+--]+$", "+,-", "."),
    ("^[a-c-]+$", "b-", "d"),
    ("^[a-c-e]+$", "a-e", "d"),
    ("^[-a]+$", "-a", "b"),
    (r"^[\w.-]+$", "a-b.c_", "a b"),
    (r"^[\d-z]+$", "1-z", "a"),
    (r"^[\]\\^]+$", r"]\^", "["),
    (r"^[\x41-\x{43}\p{Greek}-]+$", "B\u{3b1}-", "D"),
    (r"^[\060-\071]+$", "09", "a"),
    (r"^[^\D]$", "7", "x"),
    (r"^[^\D5]$", "7", "5"),
    ("^[#  ]+$", "# ", "a"),
    ("^[^a]$", "\n", "a"),
    // ASCII and Unicode.
    (r"^\d+$", "12", "\u{661}"),
    (r"^\w+$", "az_09", "\u{e9}"),
    (r"^\s$", " ", "\u{a0}"),
    (r"^\s$", "\u{c}", "\u{b}"),
    (r"^\W\D\S$", "\u{e9}\u{661}\u{a0}", "e1 "),
    (r"a\b", "a\u{e9}", "ab"),
    (r"a\B", "ab", "a\u{e9}"),
    (r"\b{start}", "a{start}", "start"),
    ("^[[:alpha:]]+$", "ab", "\u{e9}"),
    ("^[[:^alpha:][:digit:]]+$", "1\u{e9}", "a"),
    ("^[[:word:]-]+$", "a_-", "."),
    ("^[[:space:]]$", "\u{b}", "\u{a0}"),
    ("^[[:a]$", ":", "b"),
    ("^[[:]]$", ":]", ":"),
    (r"^\p{Greek}$", "\u{3b1}", "a"),
    (r"^\pL\PL$", "\u{e9}1", "11"),
    (r"^\p{^Greek}\P{^Greek}$", "a\u{3b1}", "\u{3b1}a"),
    (r"^[^\pL\d]$", "-", "\u{e9}"),
    // Case.
    ("(?i)^AB$", "ab", "a"),
    ("(?i)^k$", "\u{212a}", "x"),
    ("(?i)^\u{3a3}$", "\u{3c2}", "s"),
    (r"(?i)^\w$", "\u{17f}", "\u{e9}"),
    (r"(?i)^\W$", "\u{e9}", "\u{212a}"),
    ("(?i)^[[:upper:]]$", "a", "1"),
    ("(?i)^[^a]$", "b", "A"),
    (r"(?i)^\QaB\E$", "Ab", "b"),
    (r"(?i)^\x{e9}$", "\u{c9}", "e"),
    // The dotless and the dotted i have no simple folding.
    ("(?i)^i$", "I", "\u{131}"),
    // Flags and groups.
    ("^(?P<x>a)(?:b)(?<y>c)$", "abc", "ac"),
    ("^(?P<1>a)$", "a", "b"),
    ("(?s-i:^.$)", "\n", "ab"),
    ("(?ii)^A$", "a", "b"),
    ("(?i-i)^A$", "A", "a"),
    ("^(?)a$", "a", "b"),
    ("^(?:)a$", "a", "b"),
    ("^(?-s).$", "a", "\n"),
    ("^(?:(?i)a|b)c$", "Bc", "BC"),
    ("(?m)^b$", "a\nb", "ab"),
    ("b$", "ab", "b\n"),
    (r"\Ab\z", "b", "a\nb"),
    ("(?U)^a+$", "aa", "b"),
    ("^a??b*?$", "bb", "c"),
    ("^(a|)$", "", "b"),
    // Signs that are characters.
    (r"^a\<b\>\_$", "a<b>_", "ab"),
    (r"^a\.b\/c\-\ $", "a.b/c- ", "axb/c- "),
    ("^a #b$", "a #b", "a"),
];

#[test]
fn patterns_mean_what_they_mean_to_re2() {
    for (pattern, yes, no) in FACTS {
        let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let thousand = "a".repeat(1000);
        let yes = if pattern.contains("1000") {
            &thousand
        } else {
            *yes
        };
        assert!(compiled.is_match(yes), "{pattern} on {yes:?}");
        assert!(!compiled.is_match(no), "{pattern} on {no:?}");
    }
}

#[test]
fn what_re2_refuses_is_refused_in_words() {
    for (pattern, words) in [
        ("(", "unclosed group"),
        ("(?i", "unclosed group"),
        (")", "unopened group"),
        ("[", "unclosed character class"),
        ("[a", "unclosed character class"),
        ("[]", "unclosed character class"),
        ("[a-", "unclosed character class"),
        (r"[\", "a backslash at the end"),
        (r"\", "a backslash at the end"),
        (r"a\1", "\\1: there are no backreferences"),
        (r"[\1]", "\\1: there are no backreferences"),
        (r"\8", "unknown escape \\8"),
        (r"\u{61}", "unknown escape \\u"),
        (r"\h", "unknown escape \\h"),
        (r"\Z", "unknown escape \\Z"),
        (r"\C", "unknown escape \\C"),
        (r"a\E", "unknown escape \\E"),
        (r"[\Qa\E]", "unknown escape \\Q"),
        (r"[\b]", "unknown escape \\b"),
        (r"[a-\d]", "unknown escape \\d"),
        ("\\\u{e9}", "unknown escape \\\u{e9}"),
        (r"\x6", "\\x is not followed by a hexadecimal number"),
        (r"\x+6", "\\x is not followed by a hexadecimal number"),
        (r"\x{}", "\\x is not followed by a hexadecimal number"),
        (r"\x{110000}", "\\x{110000} is no character"),
        ("x{1001}", "{1001} is more than 1000 repetitions"),
        ("x{1,1001}", "{1,1001} is more than 1000 repetitions"),
        (
            "x{99999999999}",
            "{99999999999} is more than 1000 repetitions",
        ),
        ("x{3,2}", "{3,2} counts downwards"),
        ("a**", "* cannot follow another repetition operator"),
        ("a*?+", "+ cannot follow another repetition operator"),
        ("a{2}{3}", "{3} cannot follow another repetition operator"),
        ("*", "repetition operator missing expression"),
        ("a|+", "repetition operator missing expression"),
        ("(?x)a", "(?x begins no group that there is"),
        ("(?u:a)", "(?u begins no group that there is"),
        ("(?i-)a", "(?i- begins no group that there is"),
        ("(?=a)", "(?=a begins no group that there is"),
        ("(?<=a)", "\"=a)\" cannot be the name of a group"),
        ("(?P<a b>c)", "\"a b\" cannot be the name of a group"),
        ("(?P<a>b)(?P<a>c)", "\"a\" cannot be the name of a group"),
        ("[[:no:]]", "unknown class [:no:]"),
        ("[[:::]]", "unknown class [:::]"),
        ("[a--c]", "the range 'a' to '-' is empty"),
        ("[b-a]", "the range 'b' to 'a' is empty"),
        (r"\p", "a Unicode class is not named"),
        (r"\p{Greek", "a Unicode class is not named"),
        (r"\p{gc=L}", "a Unicode class is not named"),
        (r"\p{Klingon}", "Unicode property not found"),
    ] {
        let error = compile(pattern).expect_err(pattern);
        assert_eq!(error, words, "{pattern}");
    }
}
