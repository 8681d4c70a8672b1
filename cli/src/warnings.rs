//! What the library warns of, told to who reads the standard error.

use std::fmt::{self, Write as _};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
};

use crate::output::tell;

/// Has what the library warns of from now on told.
pub(crate) fn install() {
    // A second time in a process it is there already.
    let _ = tracing::subscriber::set_global_default(Warnings);
}

/// Hears warnings, and nothing else.
struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::WARN
            && metadata.target().starts_with("mimus")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut said = Said::default();
        event.record(&mut said);
        let Said { message, fields } = said;
        tell(&format!("mimus: warning: {message}{fields}"));
    }

    // No span is enabled.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// An event's message, and the values of its other fields behind colons.
#[derive(Default)]
struct Said {
    message: String,
    fields: String,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            _ => write!(self.fields, ": {value:?}"),
        };
    }

    fn record_str(&mut self, _: &Field, value: &str) {
        let _ = write!(self.fields, ": {value}");
    }
}
