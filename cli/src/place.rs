//! Where the body of a transfer goes.

use std::path::{Path, PathBuf};

use crate::{
    address,
    exit::{Exit, Failure},
    flags::{Flags, values::ResumeAt},
    output::{
        FileSink, Look, Output, Paging, Screen, Sink, colours_welcome, pretty::Palette,
        stdout_is_terminal,
    },
};

/// The place for the URL of this number, and from which byte on the body is asked for.
///
/// # Errors
/// When the URL names no file for -O, or the file does not reach to where it is to go on.
pub(crate) fn find(
    flags: &Flags,
    number: usize,
    url: &str,
) -> Result<(Output, Option<u64>), Failure> {
    let resume = flags.output.continue_at;
    let path = file_name(flags, number, url)?;
    let Some(path) = path.as_deref().filter(|path| *path != Path::new("-")) else {
        let offset = match resume {
            None => 0,
            Some(ResumeAt::Offset(offset)) => offset,
            Some(ResumeAt::EndOfFile) => {
                let what = "-C - needs the file of -o or -O to go on with";
                return Err(Failure::new(Exit::Usage, what));
            }
        };
        let output = Output::new(standard_output(flags, path.is_some()));
        return Ok((output, (offset > 0).then_some(offset)));
    };
    let mut file = FileSink::new(path.to_owned(), flags.output.create_dirs);
    let offset = match resume {
        None => 0,
        Some(ResumeAt::Offset(offset)) => offset,
        Some(ResumeAt::EndOfFile) => file.size()?,
    };
    file.resume_at(offset)?;
    Ok((Output::new(Sink::File(file)), (offset > 0).then_some(offset)))
}

/// What -o or -O names for this URL.
fn file_name(flags: &Flags, number: usize, url: &str) -> Result<Option<PathBuf>, Failure> {
    let flags = &flags.output;
    let name = match flags.output.get(number) {
        Some(name) if name == Path::new("-") => return Ok(Some(name.clone())),
        Some(name) => name.clone(),
        None if flags.remote_name => match address::last_segment(url) {
            Some(name) => PathBuf::from(name),
            None => {
                let what = "the URL has no file name for -O; give one with -o";
                return Err(Failure::new(Exit::Write, what));
            }
        },
        None => return Ok(None),
    };
    Ok(Some(match &flags.output_dir {
        Some(dir) => dir.join(name),
        None => name,
    }))
}

/// The standard output. `forced` is `-o -`: whatever comes, it is wanted as it is.
fn standard_output(flags: &Flags, forced: bool) -> Sink {
    let flags = &flags.terminal;
    let terminal = stdout_is_terminal();
    let coloured = colours_welcome(flags.color, terminal);
    let look = Look {
        palette: Palette::when(coloured),
        pretty: flags.pretty || (terminal && !flags.no_pretty && !forced),
        paging: match (terminal && !flags.no_pager && !forced, flags.pager) {
            (false, _) => Paging::Never,
            (true, false) => Paging::WhenLong,
            (true, true) => Paging::Always,
        },
        immediate: flags.no_buffer,
        text_only: terminal && !forced,
    };
    match look.pretty || coloured || terminal {
        true => Sink::Screen(Screen::new(look)),
        false => Sink::Stdout,
    }
}
