//! Multipart forms, as audio requests are sent.

use routing::request::{BadRequest, apply, extract};

const PATH: &str = "/v1/audio/transcriptions";
const TYPE: &str = "multipart/form-data; boundary=XX";

fn field(name: &str, value: &str) -> String {
    format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn file(value: &str) -> String {
    let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a; name=model.wav\"\r\nContent-Type: audio/wav";
    format!("--XX\r\n{head}\r\n\r\n{value}\r\n")
}

fn model(content_type: &str, body: &str) -> Result<String, BadRequest> {
    extract(PATH, Some(content_type), body.as_bytes()).map(|r| r.model.into_owned())
}

fn problem(content_type: &str, body: &str) -> &'static str {
    match model(content_type, body) {
        Err(BadRequest::Form { problem }) => problem,
        other => unreachable!("{body}: {other:?}"),
    }
}

#[test]
fn a6_the_model_field_of_a_form_is_found() {
    let parts = [
        file("RIFF\r\n--X\r\n\r\nmodel"),
        field("model", "whisper-1"),
        field("language", "sv"),
    ];
    for order in [[0, 1, 2], [1, 0, 2], [2, 0, 1]] {
        let body = format!("{}--XX--\r\n", order.map(|i| parts[i].clone()).concat());
        let request = extract(PATH, Some(TYPE), body.as_bytes()).expect(&body);
        assert_eq!(request.model, "whisper-1");
        assert_eq!(
            (
                request.stream,
                request.prompt.is_empty(),
                request.wants_usage()
            ),
            (false, true, false)
        );
        assert_eq!(request.api.label(), PATH);
        let after = apply(body.as_bytes(), &request.edits(Some("a\"b"), true));
        assert_eq!(
            String::from_utf8(after).expect("UTF-8"),
            body.replace("whisper-1", "a\"b")
        );
    }
}

#[test]
fn a6_names_and_boundaries_are_quoted_or_not() {
    let body = |head: &str| format!("--XX\r\n{head}\r\n\r\nm\r\n--XX--");
    for head in [
        "Content-Disposition: form-data; name=\"model\"",
        "content-disposition:form-data;name=model",
        "CONTENT-DISPOSITION: Form-Data ; NAME=\"model\"",
        "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; x=\"a;\\\" name=y\"; name=\"model\"",
        "Content-Disposition: form-data; name = model\r\nContent-Type: text/plain",
    ] {
        assert_eq!(model(TYPE, &body(head)), Ok("m".into()), "{head}");
    }
    for head in [
        "Content-Disposition: form-data; name=\"Model\"",
        "Content-Disposition: form-data; name=\"models\"",
        "Content-Disposition: form-data; filename=\"model\"; name=\"model\"",
        "Content-Disposition: attachment; name=\"model\"",
        "Content-Disposition: form-data",
        "X: name=model",
    ] {
        assert_eq!(
            model(TYPE, &body(head)),
            Err(BadRequest::ModelMissing),
            "{head}"
        );
    }
    let whole = body("Content-Disposition: form-data; name=\"model\"");
    for content_type in [
        "multipart/form-data;boundary=\"XX\"",
        "Multipart/Form-Data; charset=utf-8; Boundary=XX",
        "multipart/form-data; x=\"boundary=YY\"; boundary=XX ; y=z",
    ] {
        assert_eq!(
            model(content_type, &whole),
            Ok("m".into()),
            "{content_type}"
        );
    }
}

#[test]
fn a6_the_last_model_field_counts() {
    let body = format!(
        "{}{}{}--XX--",
        field("model", "cheap"),
        field("stream", "true"),
        field("model", "dear")
    );
    let request = extract(PATH, Some(TYPE), body.as_bytes()).expect("a form");
    assert_eq!((&*request.model, request.stream), ("dear", true));
    let after = apply(body.as_bytes(), &request.edits(Some("n"), true));
    assert_eq!(
        String::from_utf8(after).expect("UTF-8"),
        body.replace("dear", "n")
    );
}

#[test]
fn a6_parts_without_headers_or_content_and_a_preamble_are_fine() {
    let body = format!(
        "preamble\r\n--XX\r\n\r\nno headers\r\n{}{}--XX--epilogue",
        field("empty", ""),
        field("model", "m")
    );
    assert_eq!(model(TYPE, &body), Ok("m".into()));
    assert_eq!(
        model(TYPE, &format!("{}--XX--", field("model", ""))),
        Err(BadRequest::ModelMissing)
    );
    assert_eq!(
        model(TYPE, &format!("{}--XX--", field("model", " \t"))),
        Err(BadRequest::ModelMissing)
    );
    assert_eq!(model(TYPE, "--XX--"), Err(BadRequest::ModelMissing));
}

#[test]
fn a6_malformed_forms_are_refused() {
    let whole = format!("{}{}--XX--", field("model", "m"), field("x", "y"));
    assert_eq!(
        problem("multipart/form-data", &whole),
        "the content type names no boundary"
    );
    assert_eq!(
        problem("multipart/form-data; boundary=", &whole),
        "the content type names no boundary"
    );
    assert_eq!(
        problem("multipart/form-data; boundary=YY", &whole),
        "its boundary is nowhere in the body"
    );
    assert_eq!(problem(TYPE, ""), "its boundary is nowhere in the body");
    for len in 4..whole.len() - 2 {
        assert_eq!(
            problem(TYPE, &whole[..len]),
            "it ends inside a part",
            "{len}"
        );
    }
    let error = model("multipart/form-data", "").expect_err("no boundary");
    assert_eq!(
        error.to_string(),
        "the body is not a valid multipart form: the content type names no boundary"
    );
    assert_eq!(error.status().as_u16(), 400);
}

#[test]
fn a6_any_bytes_make_an_error_and_no_panic() {
    let pieces = [
        "--XX",
        "\r\n",
        "--",
        "\r\n\r\n",
        "Content-Disposition: form-data; name=model",
        "m",
        "\"",
        ";",
        "=",
    ];
    let mut tried = 0;
    for a in pieces {
        for b in pieces {
            for c in pieces {
                for d in pieces {
                    let body = ["--XX\r\n", a, b, c, d].concat();
                    tried += usize::from(model(TYPE, &body).is_err());
                }
            }
        }
    }
    assert_eq!(
        tried,
        pieces.len().pow(4),
        "none of them is a whole form with a model"
    );
}

#[test]
fn a6_other_content_types_are_json() {
    for content_type in [
        "application/json",
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "multipart/mixed",
    ] {
        assert_eq!(
            model(content_type, r#"{"model":"m"}"#),
            Ok("m".into()),
            "{content_type}"
        );
    }
}
