//! What a server may ask of us.

use std::time::Duration;

/// How much a server may ask for. Every limit is on by default.
///
/// Some frames cost work and bring nothing. For each kind there is an *allowance* of so many in a
/// [`flood_window`](Self::flood_window); useful frames (heads, and data in either direction) earn it
/// back, sixteen a frame, so that a busy connection never meets it and an idle one cannot be kept
/// busy. What goes beyond ends the connection with ENHANCE_YOUR_CALM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one decoded header section: names, values, and 32 for each field as RFC 9113
    /// section 6.5.2 counts. Beyond it the stream is reset. Default 64 KiB.
    pub head_bytes: u32,
    /// Fields in one header section. Beyond it the stream is reset. Default 256.
    pub fields: usize,
    /// Informational responses before the final one. Default 16.
    pub informational: u32,
    /// Bytes of one encoded header block, over all its frames: a connection error beyond, because
    /// the rest of it would have to be decoded all the same. Default 128 KiB.
    pub header_block: u32,
    /// CONTINUATION frames of one header block (CVE-2024-28182). Default 32.
    pub continuations: u32,
    /// Settings in one SETTINGS frame. Default 64.
    pub settings_entries: u32,
    /// Allowance of SETTINGS frames, each of which is acknowledged (CVE-2019-9515). Default 100.
    pub settings: u32,
    /// Allowance of PING frames, each of which is answered (CVE-2019-9512). Default 500.
    pub pings: u32,
    /// Allowance of streams that the server resets before their response is whole
    /// (CVE-2023-44487 turned around). Default 500.
    pub resets: u32,
    /// Allowance of streams that a breach by the server makes us reset, refused pushes among them
    /// (CVE-2019-9514, CVE-2025-8671). Default 100.
    pub provoked_resets: u32,
    /// Allowance of frames that are empty and end nothing (CVE-2019-9518). Default 100.
    pub empty_frames: u32,
    /// Allowance of frames that change nothing: PRIORITY, unknown types, what comes late for a
    /// closed stream. Default 1000.
    pub idle_frames: u32,
    /// After how long every allowance is whole again. Default 10 s.
    pub flood_window: Duration,
    /// Frames in answer to the server that wait to be written: a server that asks and does not
    /// read is left (CVE-2019-9517). Default 1000.
    pub unsent_replies: u32,
    /// Streams open at a time, whatever the server allows. Default 1000.
    pub streams: u32,
    /// Streams open at a time before the server's first SETTINGS came. Default 100, as RFC 9113
    /// section 6.5.2 recommends servers to allow.
    pub streams_before_settings: u32,
    /// Bytes up to which the receive window of a stream may grow with the bandwidth-delay product:
    /// what a stream nobody reads may hold. It does not shrink what the opening announces.
    /// Default 8 MiB.
    pub stream_window: u32,
    /// The same of the whole connection. Default 16 MiB.
    pub connection_window: u32,
    /// Bytes of body that may wait unread in all streams together. Near it, the connection's window
    /// is not opened again before somebody reads. Default 32 MiB.
    pub unread: u32,
    /// Bytes of request body that a stream asks for ahead of the socket. Default 128 KiB.
    pub send_queue: u32,
    /// The most that our encoder's dynamic table uses, in bytes, whatever the server allows
    /// (RFC 7541 section 4.2). Default 4096.
    pub encoder_table: u32,
    /// Origins that the server says it is there for (RFC 8336) that are remembered; of no further one is it
    /// believed. Default 100.
    pub origins: usize,
    /// Streams that we reset and whose late frames are known to be late. Default 1024.
    pub reset_memory: usize,
    /// How long the server may take to acknowledge our SETTINGS. Default 30 s.
    pub settings_wait: Duration,
    /// A connection with open streams that heard nothing for so long is asked by PING whether it
    /// lives. Default 30 s; `None` never asks.
    pub keep_alive: Option<Duration>,
    /// How long the answer to a PING may take. Default 20 s.
    pub ping_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            fields: 256,
            informational: 16,
            header_block: 128 * 1024,
            continuations: 32,
            settings_entries: 64,
            settings: 100,
            pings: 500,
            resets: 500,
            provoked_resets: 100,
            empty_frames: 100,
            idle_frames: 1000,
            flood_window: Duration::from_secs(10),
            unsent_replies: 1000,
            streams: 1000,
            streams_before_settings: 100,
            stream_window: 8 << 20,
            connection_window: 16 << 20,
            unread: 32 << 20,
            send_queue: 128 * 1024,
            encoder_table: 4096,
            origins: 100,
            reset_memory: 1024,
            settings_wait: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(30)),
            ping_wait: Duration::from_secs(20),
        }
    }
}
