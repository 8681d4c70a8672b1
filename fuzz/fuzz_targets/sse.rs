//! An event stream means what the letter of the standard says, however it is split; limits hold, and are
//! the same for any split. Lines of JSON likewise.

#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use mimus_fuzz::{
    Choices, fuzz,
    sse::{by_the_letter, read},
};
use mimus_proto::sse::{Ends, Limits, Lines, TooLong};

type Split = (Vec<Bytes>, Result<Option<Bytes>, TooLong>);

/// The lines of a body in pieces that end at these places, each counted from the last.
fn lines(limit: usize, body: &Bytes, cuts: &[usize]) -> Split {
    let (mut lines, mut out, mut rest) = (Lines::new(Ends::Lf, limit), Vec::new(), body.clone());
    for &cut in cuts.iter().chain([&usize::MAX]) {
        lines.push(rest.split_to(cut.min(rest.len())));
        loop {
            match lines.next_line() {
                Ok(Some(line)) => out.push(line.to_bytes()),
                Ok(None) => break,
                Err(error) => return (out, Err(error)),
            }
        }
    }
    (out, Ok(lines.finish()))
}

fuzz!("sse", |data| {
    let mut choices = Choices::new(data);
    let (line, event) = (usize::from(choices.byte()), usize::from(choices.byte()));
    let (cuts, stream) = (choices.cuts(), Bytes::copy_from_slice(choices.rest()));
    let ones = vec![1; stream.len()];
    let letter = by_the_letter(&stream);
    for cuts in [&[][..], &cuts, &ones] {
        assert_eq!(read(Limits::default(), &stream, cuts), letter);
    }
    let limits = Limits::default().line(line).event(event);
    let whole = read(limits, &stream, &[]);
    assert_eq!(read(limits, &stream, &cuts), whole);
    assert_eq!(read(limits, &stream, &ones), whole);
    assert!(letter.events.starts_with(&whole.events));
    assert!(whole.events.iter().all(|(_, data, _)| data.len() <= 3 * event));

    let whole = lines(line, &stream, &[]);
    assert_eq!(lines(line, &stream, &cuts), whole);
    assert_eq!(lines(line, &stream, &ones), whole);
    assert!(whole.0.iter().all(|one| one.len() <= line));
});
