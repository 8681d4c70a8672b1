//! A bar with the speed and the time that is left, on the standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt;

/// The progress of one body. Nothing is drawn when the standard error is no terminal.
#[derive(Debug, Clone)]
pub(crate) struct Progress(ProgressBar);

/// With a known end.
const BAR: &str = "{msg} {bar:30} {bytes:>10}/{total_bytes} {bytes_per_sec:>12} {eta:>5}";
/// Without.
const SPINNER: &str = "{msg} {spinner} {bytes:>10} {bytes_per_sec:>12} {elapsed:>5}";

impl Progress {
    /// A bar called `name` that begins at `start` of `total` bytes.
    pub(crate) fn new(name: &str, start: u64, total: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        bar.set_style(style(total.is_some()));
        bar.set_message(name.to_owned());
        bar.set_position(start);
        // The speed is that of this transfer, not of what was there before.
        bar.reset_eta();
        interrupt::set_bar(Some(bar.clone()));
        Progress(bar)
    }

    /// So many bytes are there.
    pub(crate) fn at(&self, position: u64) {
        self.0.set_position(position);
    }

    /// Learns how many there will be.
    pub(crate) fn set_total(&self, total: u64) {
        if self.0.length() != Some(total) {
            self.0.set_style(style(true));
            self.0.set_length(total);
        }
    }

    /// The body came whole; the bar stays to be seen.
    pub(crate) fn finish(&self) {
        interrupt::set_bar(None);
        self.0.abandon();
    }

    /// The body did not, or is not worth a line.
    pub(crate) fn clear(&self) {
        interrupt::set_bar(None);
        self.0.finish_and_clear();
    }
}

fn style(has_end: bool) -> ProgressStyle {
    let template = if has_end { BAR } else { SPINNER };
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [BAR, SPINNER] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
