//! What the two sides have announced (RFC 9113 section 6.5).

use super::opening::{Opening, SettingId};
use crate::PeerMisbehaved;

/// RFC 9113 section 6.5.2: the initial window, and section 6.9.2: that of the connection.
pub(super) const DEFAULT_WINDOW: u32 = 65_535;
/// RFC 9113 section 6.5.2.
pub(super) const DEFAULT_FRAME: u32 = 16_384;
/// RFC 9113 section 6.5.2.
pub(super) const MAX_FRAME: u32 = (1 << 24) - 1;
/// RFC 9113 section 6.9.1.
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;
/// RFC 7541 through RFC 9113 section 6.5.2.
pub(super) const DEFAULT_TABLE: u32 = 4096;

/// What we announced, as far as it binds the server. All of it precedes our first request, so that
/// the server knows it before it can open its mouth on a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local {
    pub(super) table: u32,
    pub(super) push: bool,
    pub(super) window: u32,
    pub(super) frame: u32,
}

impl Local {
    pub(super) fn of(opening: &Opening) -> Self {
        let mut local =
            Self { table: DEFAULT_TABLE, push: true, window: DEFAULT_WINDOW, frame: DEFAULT_FRAME };
        for &(id, value) in &opening.settings {
            match id {
                SettingId::HEADER_TABLE_SIZE => local.table = value,
                SettingId::ENABLE_PUSH => local.push = value != 0,
                SettingId::INITIAL_WINDOW_SIZE => local.window = value.min(MAX_WINDOW),
                SettingId::MAX_FRAME_SIZE => local.frame = value.clamp(DEFAULT_FRAME, MAX_FRAME),
                _ => {}
            }
        }
        local
    }
}

/// What the server announced, defaults where it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerSettings {
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub header_table_size: u32,
    /// SETTINGS_MAX_CONCURRENT_STREAMS; without a value there is no bound.
    pub max_concurrent_streams: Option<u32>,
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    pub initial_window_size: u32,
    /// SETTINGS_MAX_FRAME_SIZE.
    pub max_frame_size: u32,
    /// SETTINGS_MAX_HEADER_LIST_SIZE, which is advice.
    pub max_header_list_size: Option<u32>,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441).
    pub connect_protocol: bool,
    /// SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218).
    pub no_rfc7540_priorities: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            header_table_size: DEFAULT_TABLE,
            max_concurrent_streams: None,
            initial_window_size: DEFAULT_WINDOW,
            max_frame_size: DEFAULT_FRAME,
            max_header_list_size: None,
            connect_protocol: false,
            no_rfc7540_priorities: false,
        }
    }
}

/// What a setting changed beyond the value itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// The encoder's table.
    Table(u32),
    /// The windows of all streams, by so much.
    Windows(i64),
}

impl PeerSettings {
    /// Takes one setting, in the order of the frame (RFC 9113 section 6.5.3).
    pub(super) fn apply(&mut self, id: SettingId, value: u32) -> Result<Change, PeerMisbehaved> {
        match id {
            SettingId::HEADER_TABLE_SIZE => {
                self.header_table_size = value;
                return Ok(Change::Table(value));
            }
            // RFC 9113 section 6.5.2: a server must not say 1, and other values are invalid.
            SettingId::ENABLE_PUSH if value != 0 => return Err(PeerMisbehaved::BadSetting),
            SettingId::MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = Some(value),
            SettingId::INITIAL_WINDOW_SIZE => {
                if value > MAX_WINDOW {
                    return Err(PeerMisbehaved::BadInitialWindow);
                }
                let by = i64::from(value) - i64::from(self.initial_window_size);
                self.initial_window_size = value;
                return Ok(Change::Windows(by));
            }
            SettingId::MAX_FRAME_SIZE => {
                if !(DEFAULT_FRAME..=MAX_FRAME).contains(&value) {
                    return Err(PeerMisbehaved::BadSetting);
                }
                self.max_frame_size = value;
            }
            SettingId::MAX_HEADER_LIST_SIZE => self.max_header_list_size = Some(value),
            SettingId::ENABLE_CONNECT_PROTOCOL => {
                // RFC 8441 section 3: 0 or 1, and never taken back.
                if value > 1 || (self.connect_protocol && value == 0) {
                    return Err(PeerMisbehaved::BadSetting);
                }
                self.connect_protocol = value == 1;
            }
            SettingId::NO_RFC7540_PRIORITIES => {
                // RFC 9218 section 2.1.
                if value > 1 {
                    return Err(PeerMisbehaved::BadSetting);
                }
                self.no_rfc7540_priorities = value == 1;
            }
            // RFC 9113 section 6.5.2: what is not known is ignored.
            _ => {}
        }
        Ok(Change::Nothing)
    }
}
